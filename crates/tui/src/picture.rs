//! Pictures for a prompt, from files and from elsewhere. Reading takes time: this is called off the task of the screen.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use multitap_event::Image;

/// The largest picture that is taken, in bytes.
pub const LARGEST: usize = 20 * 1024 * 1024;

/// Reads a picture; also gives its name.
pub(crate) fn read(folder: Option<&Path>, path: &str) -> (String, Result<Image, String>) {
    let path = folder.map_or_else(|| path.into(), |folder| folder.join(path));
    let name = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    (name, bytes(&path).map_err(|why| format!("{}: {why}", path.display())))
}

fn bytes(path: &Path) -> Result<Image, String> {
    let size = fs::metadata(path).map_err(|error| error.to_string())?.len();
    fits(size)?;
    of(&fs::read(path).map_err(|error| error.to_string())?)
}

fn fits(size: u64) -> Result<(), String> {
    if size > LARGEST as u64 {
        return Err(format!("{size} bytes are too many: at most {LARGEST} can be sent"));
    }
    Ok(())
}

/// A picture that is at hand.
pub(crate) fn of(bytes: &[u8]) -> Result<Image, String> {
    fits(bytes.len() as u64)?;
    let media_type = Image::media_type_of(bytes).map_err(|error| error.to_string())?;
    Ok(Image { media_type: media_type.to_owned(), data: base64::prelude::BASE64_STANDARD.encode(bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_known_by_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("cat.png"), [0x89, b'P', b'N', b'G', 1]).unwrap();
        fs::write(folder.path().join("cat.txt"), "meow").unwrap();
        let (name, image) = read(Some(folder.path()), "cat.png");
        let image = image.unwrap();
        assert_eq!(
            (name.as_str(), image.media_type.as_str(), image.data.as_str()),
            ("cat.png", "image/png", "iVBORwE=")
        );
        assert!(read(Some(folder.path()), "cat.txt").1.unwrap_err().contains("not a PNG"));
        assert!(of(&vec![0; LARGEST + 1]).unwrap_err().contains("too many"));
        assert!(read(Some(folder.path()), "gone.png").1.unwrap_err().contains("gone.png"));
    }
}
