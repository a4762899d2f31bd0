//! Programs that stand in for those of a desktop, on a `PATH` of their own.

use std::fs;

use multitap_testkit::executable;

use super::*;

/// A desktop with these programs, each a line of shell.
struct Fake {
    folder: tempfile::TempDir,
    desk: Desktop,
}

impl Fake {
    fn new(ways: &[ClipboardTool], programs: &[(ClipboardTool, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (way, line) in programs {
            let file = folder.path().join(way.to_string());
            executable(&file, &format!("#!/bin/sh\n{line}\n")).unwrap();
        }
        let path = Some(folder.path().as_os_str().to_owned());
        Self { desk: Desktop { ways: ways.to_vec(), path, keeper: Keeper::Group }, folder }
    }

    async fn read(&self) -> Result<ClipboardContent, String> {
        self.desk.read(Duration::from_secs(60)).await.map_err(|error| error.to_string())
    }
}

/// A fake wl-paste or xclip: the requested type is its last argument.
const PICTURE: &str = r#"for last; do :; done
case "$last" in
    --list-types|TARGETS) printf 'TARGETS\nimage/tiff\ntext/plain\nimage/png\n';;
    image/png) printf '\211PNGbytes';;
    *) echo "Error: target $last not available" >&2; exit 1;;
esac"#;
const TEXT: &str = r#"for last; do :; done
case "$last" in
    --list-types|TARGETS) printf 'text/html\nUTF8_STRING\ntext/plain\n';;
    UTF8_STRING|text/plain) printf 'two\nlines\n';;
    *) exit 1;;
esac"#;

#[tokio::test]
async fn a_picture_is_taken_where_there_is_one_and_else_text() {
    let picture = || ClipboardContent::Picture(b"\x89PNGbytes".to_vec());
    for way in [ClipboardTool::WlPaste, ClipboardTool::Xclip] {
        assert_eq!(Fake::new(&[way], &[(way, PICTURE)]).read().await, Ok(picture()), "{way}");
        assert_eq!(
            Fake::new(&[way], &[(way, TEXT)]).read().await,
            Ok(ClipboardContent::Text("two\nlines\n".to_owned())),
            "{way}"
        );
    }
    let both = [ClipboardTool::WlPaste, ClipboardTool::Xclip];
    assert_eq!(
        Fake::new(&both, &[(ClipboardTool::Xclip, PICTURE)]).read().await,
        Ok(picture()),
        "the one that is there"
    );
}

#[tokio::test]
async fn nothing_is_no_error_and_an_error_is_not_nothing() {
    let cases = [
        (ClipboardTool::WlPaste, "echo 'Nothing is copied' >&2; exit 1"),
        (ClipboardTool::Xclip, "echo 'Error: target TARGETS not available' >&2; exit 1"),
        (ClipboardTool::WlPaste, "echo application/x-thing"),
        (ClipboardTool::Osascript, "echo '0:13: execution error: ... (-1700)' >&2; exit 1"),
        (ClipboardTool::PowerShell, "printf 'text\\n'"),
    ];
    for (way, line) in cases {
        assert_eq!(Fake::new(&[way], &[(way, line)]).read().await, Ok(ClipboardContent::Nothing), "{way}: {line}");
    }
    let lost =
        Fake::new(&[ClipboardTool::Xclip], &[(ClipboardTool::Xclip, "echo \"Error: Can't open display\" >&2; exit 1")]);
    assert!(lost.read().await.unwrap_err().contains("Can't open display"));
}

#[tokio::test]
async fn other_systems_tell_it_in_their_own_way() {
    let mac = r#"case "$2" in *PNGf*) echo '«data PNGf89504E47»';; *) echo words;; esac"#;
    let picture = Ok(ClipboardContent::Picture(b"\x89PNG".to_vec()));
    assert_eq!(Fake::new(&[ClipboardTool::Osascript], &[(ClipboardTool::Osascript, mac)]).read().await, picture);
    let mac = r#"case "$2" in *PNGf*) echo '(-1700)' >&2; exit 1;; *) echo words;; esac"#;
    assert_eq!(
        Fake::new(&[ClipboardTool::Osascript], &[(ClipboardTool::Osascript, mac)]).read().await,
        Ok(ClipboardContent::Text("words".to_owned()))
    );
    let windows = "printf 'picture\\n\\211PNG'";
    assert_eq!(Fake::new(&[ClipboardTool::PowerShell], &[(ClipboardTool::PowerShell, windows)]).read().await, picture);
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let wayland = Fake::new(&[ClipboardTool::WlPaste, ClipboardTool::Xclip], &[]).read().await.unwrap_err();
    assert_eq!(wayland, "to read the clipboard, install wl-clipboard (it brings wl-paste)");
    let x11 = Fake::new(&[ClipboardTool::Xclip], &[]).read().await.unwrap_err();
    assert_eq!(x11, "to read the clipboard, install xclip");
    assert!(Fake::new(&[], &[]).read().await.unwrap_err().contains("/image PATH"));
}

#[tokio::test]
async fn one_that_hangs_is_ended() {
    // Its child holds the pipe too.
    let fake = Fake::new(
        &[ClipboardTool::WlPaste],
        &[(ClipboardTool::WlPaste, "echo $$ > \"${0%/*}/pid\"; sleep 600 & wait")],
    );
    let error = fake.desk.read(Duration::from_secs(5)).await.unwrap_err();
    assert!(matches!(error, ClipError::TooSlow { .. }), "{error}");
    assert_eq!(error.to_string(), "wl-paste did not answer within 5 s");
    let pid = fs::read_to_string(fake.folder.path().join("pid")).unwrap();
    let gone = || (!std::path::Path::new("/proc").join(pid.trim()).exists()).then_some(());
    if cfg!(target_os = "linux") {
        multitap_testkit::wait::until_blocking("the end of wl-paste", Duration::from_secs(20), gone).unwrap();
    }
}

#[tokio::test]
async fn one_without_an_end_is_stopped() {
    let endless = r#"for last; do :; done
case "$last" in --list-types) echo image/png;; *) exec cat /dev/zero;; esac"#;
    let error = Fake::new(&[ClipboardTool::WlPaste], &[(ClipboardTool::WlPaste, endless)]).read().await.unwrap_err();
    assert_eq!(error, "the clipboard is too large: at most 20 MiB can be sent");
}
