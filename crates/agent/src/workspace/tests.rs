use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};

use proptest::prelude::*;
use tempfile::TempDir;

use super::open::{OpenError, open};
use super::put::{ExpectedContent, PutError, put};
use super::*;

/// A workspace in `in`, with an `out` beside it.
struct Scene {
    dir: TempDir,
    workspace: Workspace,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("in/src")).unwrap();
        fs::create_dir_all(dir.path().join("out")).unwrap();
        fs::write(dir.path().join("in/src/a.txt"), "inside").unwrap();
        fs::write(dir.path().join("out/secret"), "outside").unwrap();
        let workspace = Workspace::new(&dir.path().join("in"), &[], Some(dir.path().join("in/src"))).unwrap();
        Self { dir, workspace }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(below)
    }

    fn link(&self, target: impl AsRef<Path>, at: &str) {
        symlink(target, self.path(at)).unwrap();
    }

    #[track_caller]
    fn leads(&self, path: &str, to: &str) {
        assert_eq!(self.workspace.resolve(path).unwrap().path(), self.path(to), "{path}");
    }

    #[track_caller]
    fn refused(&self, path: &str) -> String {
        let error = self.workspace.resolve(path).unwrap_err().to_string();
        assert!(error.contains(path), "names the path: {error}");
        assert!(error.contains(&self.path("in").display().to_string()), "names the folder: {error}");
        error
    }
}

#[test]
fn paths_lead_where_the_system_would_lead_them() {
    let scene = Scene::new();
    scene.link("src", "in/short");
    scene.link("src/new.txt", "in/dangling");
    scene.leads("src/a.txt", "in/src/a.txt");
    scene.leads("./src/../src/a.txt", "in/src/a.txt");
    scene.leads(&scene.path("in/src").display().to_string(), "in/src");
    scene.leads("", "in");
    scene.leads("~/a.txt", "in/src/a.txt");
    scene.leads("~", "in/src");
    scene.leads("short/a.txt", "in/src/a.txt");
    scene.leads("short/../x", "in/x");
    scene.leads("not/there/yet.txt", "in/not/there/yet.txt");
    scene.leads("dangling", "in/src/new.txt");
    scene.leads("../in/src/a.txt", "in/src/a.txt");
}

#[test]
fn what_lies_outside_is_refused() {
    let scene = Scene::new();
    let secret = scene.path("out/secret");
    scene.link(&secret, "in/file");
    scene.link("../out", "in/folder");
    scene.link("../out/new", "in/dangling");
    scene.link("folder/secret", "in/chain");
    scene.link("round", "in/round");
    for path in ["..", "../out/secret", "src/../../out/secret", "/etc/passwd", "/proc/self/environ", "/", "../in2"] {
        assert!(scene.refused(path).contains("lies outside"), "{path}");
    }
    assert!(scene.refused(&secret.display().to_string()).contains("lies outside"));
    for path in ["file", "folder", "folder/secret", "folder/new/file", "dangling", "chain", "folder/../out/secret"] {
        let error = scene.refused(path);
        assert!(error.contains("follows a link out") || path.contains(".."), "{error}");
    }
    assert!(scene.refused("round").contains("too many links"));
    assert!(scene.refused("src/a.txt/b").contains("does not exist"));
    assert!(scene.workspace.resolve("a\0b").is_err());
}

#[test]
fn a_folder_with_a_longer_name_is_another_folder() {
    let scene = Scene::new();
    fs::create_dir(scene.path("in-other")).unwrap();
    scene.refused("../in-other");
}

#[test]
fn added_folders_are_inside_too() {
    let scene = Scene::new();
    let workspace = Workspace::new(&scene.path("in"), &[PathBuf::from("../out")], None).unwrap();
    assert_eq!(workspace.resolve("../out/secret").unwrap().folder(), scene.path("out"));
    assert_eq!(workspace.shown(&scene.path("in/src/a.txt")), "src/a.txt");
    assert_eq!(workspace.shown(&scene.path("out/secret")), scene.path("out/secret").display().to_string());
    assert!(workspace.resolve("..").unwrap_err().to_string().contains(", "), "names both folders");
    assert!(Workspace::new(&scene.path("in/none"), &[], None).is_err());
    assert!(Workspace::new(&scene.path("in/src/a.txt"), &[], None).is_err());
}

// There is no safe way to make a pipe by name there.
#[cfg(not(target_vendor = "apple"))]
#[test]
fn only_plain_files_are_opened() {
    let scene = Scene::new();
    let pipe = scene.path("in/pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600), 0)
        .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(scene.path("in/socket")).unwrap();
    let refusal = |path: &str| open(&scene.workspace.resolve(path).unwrap()).unwrap_err().to_string();
    assert_eq!(refusal("pipe"), "it is a pipe, not a plain file");
    assert_eq!(refusal("socket"), "it is a socket, not a plain file");
    assert_eq!(refusal("src"), "it is a folder");
    assert_eq!(refusal(""), "it is a folder");
    assert_eq!(refusal("none"), "it does not exist");
    assert_eq!(refusal("none/at/all"), "it does not exist");
}

#[cfg(target_os = "linux")]
#[test]
fn the_systems_own_files_are_refused_even_in_a_workspace_that_is_everything() {
    let workspace = Workspace::new(Path::new("/"), &[], None).unwrap();
    let refusal = |path: &str| open(&workspace.resolve(path).unwrap()).unwrap_err().to_string();
    assert!(refusal("/proc/self/environ").contains("system's own"));
    assert!(refusal("/dev/null").contains("a device"));
}

#[test]
fn a_link_put_in_the_way_after_the_path_was_judged_leads_nowhere() {
    let scene = Scene::new();
    fs::write(scene.path("out/a.txt"), "outside").unwrap();
    let inside = scene.workspace.resolve("src/a.txt").unwrap();
    let held = ExpectedContent::Text("inside".to_owned());

    fs::rename(scene.path("in/src/a.txt"), scene.path("in/kept")).unwrap();
    scene.link(scene.path("out/a.txt"), "in/src/a.txt");
    assert!(matches!(open(&inside), Err(OpenError::Link)));
    assert!(matches!(put(&inside, &held, b"new"), Err(PutError::Open(OpenError::Link))));

    fs::rename(scene.path("in/src"), scene.path("in/src-kept")).unwrap();
    scene.link(scene.path("out"), "in/src");
    assert!(matches!(open(&inside), Err(OpenError::Link)));
    assert!(matches!(
        put(&inside, &ExpectedContent::Text("outside".to_owned()), b"new"),
        Err(PutError::Open(OpenError::Link))
    ));
    assert!(matches!(put(&inside, &ExpectedContent::Nothing, b"new"), Err(PutError::Open(OpenError::Link))));
    assert_eq!(fs::read_to_string(scene.path("out/a.txt")).unwrap(), "outside");
    assert_eq!(fs::read_dir(scene.path("out")).unwrap().count(), 2);
}

#[test]
fn a_file_is_written_whole_with_its_mode_and_nothing_beside_it() {
    let scene = Scene::new();
    let file = scene.path("in/src/a.txt");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o751)).unwrap();
    let inside = scene.workspace.resolve("src/a.txt").unwrap();
    put(&inside, &ExpectedContent::Text("inside".to_owned()), b"new").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o751);
    assert!(matches!(put(&inside, &ExpectedContent::Text("inside".to_owned()), b"x"), Err(PutError::Changed)));
    assert!(matches!(put(&inside, &ExpectedContent::Nothing, b"x"), Err(PutError::Changed)));
    assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    assert_eq!(fs::read_dir(scene.path("in/src")).unwrap().count(), 1, "no passing file stays");

    let new = scene.workspace.resolve("deep/er/b.txt").unwrap();
    assert!(matches!(put(&new, &ExpectedContent::Text(String::new()), b"x"), Err(PutError::Changed)));
    put(&new, &ExpectedContent::Nothing, b"made").unwrap();
    assert_eq!(fs::read_to_string(scene.path("in/deep/er/b.txt")).unwrap(), "made");
}

#[test]
fn what_is_not_text_is_known_again_by_its_stamp() {
    let scene = Scene::new();
    let inside = scene.workspace.resolve("src/a.txt").unwrap();
    let stamp = crate::seen::Stamp::of(open(&inside).unwrap()).unwrap();
    fs::write(scene.path("in/src/a.txt"), "insidE").unwrap();
    assert!(matches!(put(&inside, &ExpectedContent::Other(stamp.clone()), b"x"), Err(PutError::Changed)));
    fs::write(scene.path("in/src/a.txt"), "inside").unwrap();
    put(&inside, &ExpectedContent::Other(stamp), b"x").unwrap();
}

#[test]
fn a_read_only_file_is_left_alone() {
    let scene = Scene::new();
    let file = scene.path("in/src/a.txt");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    let inside = scene.workspace.resolve("src/a.txt").unwrap();
    let written = put(&inside, &ExpectedContent::Text("inside".to_owned()), b"new");
    // Nothing is read-only to root.
    if !rustix::process::geteuid().is_root() {
        assert!(matches!(written, Err(PutError::ReadOnly)));
        assert_eq!(fs::read_to_string(&file).unwrap(), "inside");
    }
}

/// A step of a path or of a link's target.
fn step() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-c]",
        2 => Just("..".to_owned()),
        1 => Just(".".to_owned()),
        1 => Just("out".to_owned()),
        1 => Just("in".to_owned()),
        1 => Just("file".to_owned()),
    ]
}

fn way() -> impl Strategy<Value = String> {
    prop::collection::vec(step(), 1..6).prop_map(|steps| steps.join("/"))
}

/// Where a link is, where it leads, and whether that is said from the top of the scene.
type Link = (String, String, bool);

fn everything_in(folder: &Path) -> Vec<(PathBuf, Option<String>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let kind = path.symlink_metadata().unwrap();
        found.push((path.clone(), kind.is_file().then(|| fs::read_to_string(&path).unwrap())));
        if kind.is_dir() {
            found.extend(everything_in(&path));
        }
    }
    found.sort();
    found
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

    #[test]
    fn no_path_leads_out(
        folders in prop::collection::vec("[a-c](/[a-c]){0,2}", 0..4),
        links in prop::collection::vec((way(), way(), any::<bool>()), 0..6),
        paths in prop::collection::vec(way(), 1..8),
    ) {
        let scene = Scene::new();
        for folder in &folders {
            for top in ["in", "out"] {
                fs::create_dir_all(scene.path(top).join(folder)).ok();
                fs::write(scene.path(top).join(folder).join("file"), format!("{top}side")).ok();
            }
        }
        for (at, target, from_top) in &links as &Vec<Link> {
            let target = if *from_top { scene.path("").join(target) } else { PathBuf::from(target) };
            // Some lead through others, and some places are taken: whatever can be made is made, in the workspace.
            if let Ok(at) = scene.workspace.resolve(at) {
                symlink(target, at.path()).ok();
            }
        }
        let outside = everything_in(&scene.path("out"));
        for path in &paths {
            let real = scene.path("in").join(path).canonicalize();
            match (scene.workspace.resolve(path), real) {
                (Ok(inside), real) => {
                    prop_assert!(inside.path().starts_with(scene.path("in")), "{path}");
                    if let Ok(real) = real {
                        prop_assert_eq!(inside.path(), real.as_path(), "the system agrees on {}", path);
                    }
                    let mut text = String::new();
                    if let Ok(mut file) = open(&inside) {
                        file.read_to_string(&mut text).unwrap();
                        prop_assert!(text != "outside", "{path}");
                    }
                    let held = if text.is_empty() { ExpectedContent::Nothing } else { ExpectedContent::Text(text) };
                    put(&inside, &held, b"mine").ok();
                }
                (Err(_), Ok(real)) => prop_assert!(!real.starts_with(scene.path("in")), "{path} was refused"),
                (Err(_), Err(_)) => {}
            }
        }
        prop_assert_eq!(outside, everything_in(&scene.path("out")));
    }
}
