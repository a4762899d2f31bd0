//! Pictures given by `--image`.

use std::path::Path;

use multitap_event::Image;
use multitap_tui::{LARGEST_PICTURE, PictureError, read_picture};

pub(crate) fn read(path: &Path) -> Result<Image, String> {
    let name = path.display();
    read_picture(path).map_err(|error| match error {
        PictureError::Unreadable(error) => format!("cannot read the picture {name}: {error}"),
        PictureError::TooLarge(size) => {
            format!("the picture {name} has {size} bytes; at most {LARGEST_PICTURE} can be sent")
        }
        PictureError::NotOne(error) => format!("{name} is {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_picture_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cat.png");
        let name = path.display();
        let check = |expected: String| assert!(read(&path).unwrap_err().starts_with(&expected), "{:?}", read(&path));
        check(format!("cannot read the picture {name}: "));
        std::fs::write(&path, "meow").unwrap();
        check(format!("{name} is not a PNG, JPEG, GIF or WebP picture"));
        std::fs::File::create(&path).unwrap().set_len(LARGEST_PICTURE as u64 + 1).unwrap();
        check(format!("the picture {name} has 20971521 bytes; at most 20971520 can be sent"));
    }
}
