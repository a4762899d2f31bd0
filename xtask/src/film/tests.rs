//! What the repository shows is what was recorded, and tells the story.

use std::fs;
use std::path::Path;

use super::{TITLE, cast, media, screen::Screen, stage, story, svg};

/// What the film shows, in this order.
const MOMENTS: [&str; 12] = [
    "$ multitap --a2a-port 4100",
    "$ multitap attach http://127.0.0.1:4100",
    "1 connected",
    "> write tea=3 to prices.txt then run: ./check",
    "+tea=3",
    "answered by [A2A] ben: Allow once",
    "stock: good",
    "[A2A] phone: edit prices.txt: tea=3 => tea=4",
    "-tea=3",
    "\"state\":\"input-required\"",
    "answered by [A2A] phone: Allow once",
    "\"state\":\"completed\"",
];

/// So that a page with it opens at once.
const MOST: usize = 400 * 1024;

fn recorded() -> (String, cast::Film) {
    let text = fs::read_to_string(media("cast")).unwrap();
    let film = cast::read(&text).unwrap();
    (text, film)
}

fn whole(screen: &Screen) -> String {
    screen.text(0..screen.rows()[0].len())
}

#[test]
fn the_recording_tells_the_story_in_its_order() {
    let (_, film) = recorded();
    let mut frames = film.frames.iter();
    for moment in MOMENTS {
        // The same frame may show the next one too.
        let rest = frames.clone();
        let skipped = rest.take_while(|frame| !whole(&frame.screen).contains(moment)).count();
        frames = frames.as_slice()[skipped..].iter();
        assert!(!frames.as_slice().is_empty(), "{moment:?} is not to be seen, or not after the one before it");
    }
    let last = whole(&film.frames.last().unwrap().screen);
    for words in ["answered by [A2A] phone: Allow once", "\"state\":\"completed\"", "taxes: good"] {
        assert!(last.contains(words), "{words:?} is not to be seen at the end:\n{last}");
    }
    assert!((20.0..90.0).contains(&film.end), "{} s", film.end);
}

#[test]
fn the_picture_is_that_of_the_recording() {
    let picture = fs::read_to_string(media("svg")).unwrap();
    assert_eq!(picture, svg::draw(&recorded().1, TITLE), "`cargo xtask film --draw` draws it again");
    assert!(picture.len() < MOST, "{} bytes", picture.len());
    assert!(!picture.contains("<script") && !picture.contains("http://www.w3.org/1999/xlink"));
}

#[test]
fn nothing_of_the_machine_is_in_it() {
    let (text, film) = recorded();
    let home = std::env::var("HOME").unwrap_or_default();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().display().to_string();
    let kept = text.replace(stage::HOME, "");
    let own = [home.as_str(), here.as_str()].into_iter().filter(|path| path.len() > 1);
    for path in own.chain(["/home/", "/Users/", "/root", "/var/", "/tmp", "timestamp"]) {
        assert!(!kept.contains(path), "{path} is in the recording");
        for frame in &film.frames {
            assert!(!whole(&frame.screen).replace(stage::HOME, "").contains(path), "{path} is to be seen");
        }
    }
}

#[test]
fn what_is_read_out_in_the_film_fits_into_its_terminal() {
    for (name, text) in story::FILES.iter().filter(|(name, _)| name.starts_with(stage::FOLDER)) {
        let longest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= stage::RIGHT_COLUMNS, "{name} has a line of {longest}");
    }
}

#[test]
fn the_readme_shows_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let links = readme.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let media: Vec<&str> = links.filter(|link| link.starts_with("docs/media/")).collect();
    for form in ["svg", "cast"] {
        assert!(media.contains(&format!("docs/media/shared-session.{form}").as_str()), "{media:?}");
    }
    for link in media {
        assert!(root.join(link).exists(), "README.md links {link}");
    }
}
