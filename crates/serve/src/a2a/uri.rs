//! Images that a message names by a URI: read from the URI itself or from the session's folder, or refused. No other
//! image reaches a model, and no agent has to guess from an address.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use multitap_a2a::Error;
use multitap_event::{Image, Prompt};

/// Maximum size of all image files that one message names: a message with the same bytes would exceed the body limit.
const IMAGE_BYTES: u64 = 12 * 1024 * 1024;

#[derive(Debug, PartialEq)]
pub(super) enum Source {
    /// The bytes themselves.
    Data { media_type: String, bytes: Vec<u8> },
    /// A file of this machine.
    File(PathBuf),
    /// Any other address.
    Elsewhere,
}

/// An image file that a message names. Its bytes are read once the session's folder is known.
#[derive(Debug, PartialEq)]
pub(super) struct ImageFile {
    /// Its part of the message.
    pub(super) part: usize,
    /// Its place among the prompt's images.
    pub(super) at: usize,
    pub(super) path: PathBuf,
}

/// Reads a URI; the error says what is wrong with it.
pub(super) fn source(uri: &str) -> Result<Source, String> {
    let Some((scheme, rest)) = uri.split_once(':') else { return Ok(Source::Elsewhere) };
    match scheme.to_ascii_lowercase().as_str() {
        "data" => data(rest),
        "file" => file(rest).map(Source::File),
        _ => Ok(Source::Elsewhere),
    }
}

/// Whether a part of that type, or a file of that name, is meant as an image.
pub(super) fn is_image(media_type: &str, uri: &str) -> bool {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let extension = Path::new(path).extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    let by_name = || extension.is_some_and(|it| ["png", "jpg", "jpeg", "gif", "webp"].contains(&it.as_str()));
    media_type.starts_with("image/") || (media_type.is_empty() && by_name())
}

fn data(rest: &str) -> Result<Source, String> {
    let (head, body) = rest.split_once(',').ok_or("the data: URI has no comma before its data")?;
    let bytes = unescape(body).ok_or("the data: URI has a broken percent escape")?;
    let (media_type, bytes) = match head.strip_suffix(";base64") {
        Some(media_type) => {
            let decoded = BASE64_STANDARD.decode(bytes).map_err(|_| "the data: URI is not valid base64")?;
            (media_type, decoded)
        }
        None => (head, bytes),
    };
    let media_type = media_type.split(';').next().unwrap_or_default().to_ascii_lowercase();
    // RFC 2397: without a type it is text.
    let media_type = if media_type.is_empty() { "text/plain".to_owned() } else { media_type };
    Ok(Source::Data { media_type, bytes })
}

fn file(rest: &str) -> Result<PathBuf, String> {
    let path = match rest.strip_prefix("//") {
        Some(with_host) => {
            let path = with_host.strip_prefix("localhost").unwrap_or(with_host);
            path.starts_with('/').then_some(path).ok_or("the file: URI names another machine")?
        }
        None => rest,
    };
    let path = unescape(path).and_then(|path| String::from_utf8(path).ok());
    let path = path.map(PathBuf::from).filter(|path| path.is_absolute());
    path.ok_or_else(|| "the file: URI has no absolute path".to_owned())
}

/// The bytes of a text with percent escapes.
pub(super) fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'%' {
            let [high, low, after @ ..] = after else { return None };
            let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            bytes.push(digit(*high)? << 4 | digit(*low)?);
            rest = after;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    Some(bytes)
}

/// Reads the image files that a message names into its prompt: those in the session's folder.
pub(super) async fn read_files(
    files: Vec<ImageFile>,
    folder: Option<PathBuf>,
    mut prompt: Prompt,
) -> Result<Prompt, Error> {
    if files.is_empty() {
        return Ok(prompt);
    }
    let read = tokio::task::spawn_blocking(move || {
        let mut left = IMAGE_BYTES;
        for ImageFile { part, at, path } in files {
            let image = read(&path, folder.as_deref(), &mut left);
            let image = image.map_err(|why| Error::invalid_params(format!("message.parts[{part}]: {why}")))?;
            prompt.images.insert(at.min(prompt.images.len()), image);
        }
        Ok(prompt)
    });
    read.await.unwrap_or_else(|_| Err(Error::internal("the host is shutting down")))
}

/// Subtracts the file's size from what is `left` for the message, which may name one file a thousand times.
fn read(path: &Path, folder: Option<&Path>, left: &mut u64) -> Result<Image, String> {
    let outside = || format!("the file {} is not in the session's folder; send its bytes instead", path.display());
    let folder = folder.and_then(|folder| folder.canonicalize().ok()).ok_or_else(outside)?;
    // For a path outside, the error must not tell whether it exists.
    let real = path.canonicalize().map_err(|_| outside())?;
    if !real.starts_with(&folder) {
        return Err(outside());
    }
    // Opens regular files only: a FIFO would block.
    if !fs::metadata(&real).is_ok_and(|about| about.is_file()) {
        return Err(format!("{} is not a file", path.display()));
    }
    let cannot = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let mut bytes = Vec::new();
    File::open(&real).map_err(cannot)?.take(*left + 1).read_to_end(&mut bytes).map_err(cannot)?;
    *left = left.checked_sub(bytes.len() as u64).ok_or_else(|| {
        format!("with {} the images of the message are larger than {} MiB", path.display(), IMAGE_BYTES / (1024 * 1024))
    })?;
    let media_type = Image::media_type_of(&bytes)
        .map_err(|_| format!("{} is not a PNG, JPEG, GIF or WebP image", path.display()))?;
    Ok(Image { media_type: media_type.to_owned(), data: BASE64_STANDARD.encode(&bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

    #[test]
    fn a_uri_leads_to_bytes_a_file_or_elsewhere() {
        let data = |media_type: &str, bytes: &[u8]| {
            Ok(Source::Data { media_type: media_type.to_owned(), bytes: bytes.to_owned() })
        };
        assert_eq!(source("data:image/png;base64,iVBORw0KGgo="), data("image/png", PNG));
        assert_eq!(source("DATA:image/PNG;name=a;base64,iVBORw0KGgo%3D"), data("image/png", PNG));
        assert_eq!(source("data:,a%20b"), data("text/plain", b"a b"));
        for file in ["file:///a%20b/c.png", "file:/a%20b/c.png", "file://localhost/a%20b/c.png"] {
            assert_eq!(source(file), Ok(Source::File("/a b/c.png".into())), "{file}");
        }
        for elsewhere in ["https://a.example/b.png", "b.png", "", "ftp://a/b"] {
            assert_eq!(source(elsewhere), Ok(Source::Elsewhere), "{elsewhere}");
        }
        for wrong in
            ["data:image/png;base64,%", "data:image/png;base64", "data:;base64,*", "file://host/a.png", "file:a.png"]
        {
            assert!(source(wrong).is_err(), "{wrong}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_images_inside_the_folder_are_read() {
        let place = tempfile::tempdir().unwrap();
        let (inside, outside) = (place.path().join("inside"), place.path().join("outside"));
        for folder in [&inside, &outside] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("a.png"), PNG).unwrap();
        }
        fs::write(inside.join("b.png"), "no image").unwrap();
        File::create(inside.join("big.png")).unwrap().set_len(IMAGE_BYTES + 1).unwrap();
        std::os::unix::fs::symlink(outside.join("a.png"), inside.join("link.png")).unwrap();
        let read_one = |path: &Path, folder: Option<&Path>| read(path, folder, &mut { IMAGE_BYTES });
        let image = read_one(&inside.join("a.png"), Some(&inside)).unwrap();
        assert_eq!((image.media_type.as_str(), image.data.as_str()), ("image/png", "iVBORw0KGgo="));
        for (path, why) in [
            (outside.join("a.png"), "not in the session's folder"),
            (inside.join("../outside/a.png"), "not in the session's folder"),
            (inside.join("link.png"), "not in the session's folder"),
            (inside.join("none.png"), "not in the session's folder"),
            (inside.join("b.png"), "not a PNG"),
            (inside.join("big.png"), "larger than"),
            (inside.clone(), "not a file"),
        ] {
            let error = read_one(&path, Some(&inside)).unwrap_err();
            assert!(error.contains(why), "{}: {error}", path.display());
        }
        assert!(read_one(&inside.join("a.png"), None).is_err());
    }

    /// A message of 15 MB has room for the names of 200 000 files.
    #[cfg(unix)]
    #[tokio::test]
    async fn a_file_that_is_named_a_thousand_times_is_not_read_as_often() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().canonicalize().unwrap();
        let path = folder.join("a.png");
        fs::write(&path, [PNG, &[0; 1024 * 1024]].concat()).unwrap();
        let named = |count| (0..count).map(|part| ImageFile { part, at: part, path: path.clone() }).collect();
        let prompt = read_files(named(11), Some(folder.clone()), Prompt::text("x")).await.unwrap();
        assert_eq!(prompt.images.len(), 11);
        let error = read_files(named(1000), Some(folder), Prompt::text("x")).await.unwrap_err();
        assert!(error.to_string().contains("larger than 12 MiB"), "{error}");
    }
}
