//! Pictures for a prompt, from files.

use std::path::Path;

use multitap_event::Image;

/// The largest picture that is taken.
const LARGEST: u64 = 20 * 1024 * 1024;

/// Reads a picture.
pub(crate) fn read(path: &Path) -> Result<Image, String> {
    let name = path.display();
    let size = std::fs::metadata(path).map_err(|error| format!("cannot read the picture {name}: {error}"))?.len();
    if size > LARGEST {
        return Err(format!("the picture {name} has {size} bytes; at most {LARGEST} can be sent"));
    }
    let bytes = std::fs::read(path).map_err(|error| format!("cannot read the picture {name}: {error}"))?;
    let media_type = Image::media_type_of(&bytes).map_err(|error| format!("{name} is {error}"))?;
    Ok(Image { media_type: media_type.to_owned(), data: base64(&bytes) })
}

/// Standard base64 with padding.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for place in 0..4 {
            let sextet = (bits >> (18 - 6 * place)) & 0x3f;
            text.push(if place <= chunk.len() { char::from(ALPHABET[sextet as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_the_rfc_prints_it() {
        let cases =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE=")];
        for (plain, coded) in cases {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn a_text_file_is_no_picture() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "hello").unwrap();
        let error = read(file.path()).unwrap_err();
        assert!(error.contains("PNG"), "{error}");
    }
}
