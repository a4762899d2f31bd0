//! Pictures for a prompt, from files or the clipboard. Blocking.

use std::io::Read as _;
use std::path::Path;
use std::{fs, io};

use base64::Engine as _;
use multitap_event::{Image, ImageError};

/// Maximum size of a picture in bytes.
pub const LARGEST: usize = 20 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    #[error(transparent)]
    Unreadable(#[from] io::Error),
    #[error("the picture has {0} bytes; the limit is {LARGEST}")]
    TooLarge(u64),
    #[error(transparent)]
    NotOne(#[from] ImageError),
}

pub fn read(path: &Path) -> Result<Image, PictureError> {
    // Opens regular files only: a FIFO would block.
    let about = fs::metadata(path)?;
    if !about.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file").into());
    }
    fits(about.len())?;
    let mut bytes = Vec::new();
    // It may have grown since.
    fs::File::open(path)?.take(LARGEST as u64 + 1).read_to_end(&mut bytes)?;
    of(&bytes)
}

/// Reads a picture by its path in a folder. Also returns its name.
pub(crate) fn named(folder: Option<&Path>, path: &str) -> (String, Result<Image, String>) {
    let path = folder.map_or_else(|| path.into(), |folder| folder.join(path));
    let name = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    (name, read(&path).map_err(|why| format!("{}: {why}", path.display())))
}

pub(crate) fn of(bytes: &[u8]) -> Result<Image, PictureError> {
    fits(bytes.len() as u64)?;
    let media_type = Image::media_type_of(bytes)?;
    Ok(Image { media_type: media_type.to_owned(), data: base64::prelude::BASE64_STANDARD.encode(bytes) })
}

fn fits(size: u64) -> Result<(), PictureError> {
    if size > LARGEST as u64 { Err(PictureError::TooLarge(size)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_known_by_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("cat.png"), [0x89, b'P', b'N', b'G', 1]).unwrap();
        fs::write(folder.path().join("cat.txt"), "meow").unwrap();
        let (name, image) = named(Some(folder.path()), "cat.png");
        let image = image.unwrap();
        assert_eq!(
            (name.as_str(), image.media_type.as_str(), image.data.as_str()),
            ("cat.png", "image/png", "iVBORwE=")
        );
        assert!(named(Some(folder.path()), "cat.txt").1.unwrap_err().contains("not a PNG"));
        assert!(of(&vec![0; LARGEST + 1]).unwrap_err().to_string().contains("the limit is"));
        fs::create_dir(folder.path().join("folder.png")).unwrap();
        assert!(named(Some(folder.path()), "folder.png").1.unwrap_err().contains("not a regular file"));
        #[cfg(unix)]
        assert!(named(None, "/dev/zero").1.unwrap_err().contains("not a regular file"), "it has no end");
        assert!(named(Some(folder.path()), "gone.png").1.unwrap_err().contains("gone.png"));
    }
}
