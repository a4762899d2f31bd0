//! Who may know whom, and who may use what: kept by a machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The crates that exist, and the crates of ours each may depend on.
const EDGES: &[(&str, &[&str])] = &[
    (
        "multitap",
        &[
            "multitap-a2a",
            "multitap-adapter",
            "multitap-agent",
            "multitap-bridge",
            "multitap-client",
            "multitap-event",
            "multitap-hub",
            "multitap-process",
            "multitap-remote",
            "multitap-serve",
            "multitap-store",
            "multitap-tui",
        ],
    ),
    ("multitap-client", &["multitap-adapter", "multitap-agent", "multitap-event", "multitap-hub"]),
    ("multitap-hub", &["multitap-event"]),
    ("multitap-store", &["multitap-event", "multitap-hub"]),
    ("multitap-remote", &["multitap-event", "multitap-hub", "multitap-outbound"]),
    ("multitap-serve", &["multitap-a2a", "multitap-event", "multitap-hub", "multitap-outbound"]),
    ("multitap-tui", &["multitap-diff", "multitap-event", "multitap-hub"]),
    ("multitap-a2a", &["multitap-outbound"]),
    ("multitap-adapter", &["multitap-diff", "multitap-event", "multitap-process"]),
    ("multitap-agent", &["multitap-diff", "multitap-event", "multitap-outbound", "multitap-process"]),
    ("multitap-bridge", &["multitap-a2a", "multitap-event", "multitap-outbound"]),
    ("multitap-diff", &[]),
    ("multitap-process", &[]),
    ("multitap-outbound", &[]),
    ("multitap-event", &[]),
    ("multitap-testkit", &["multitap-event", "multitap-hub"]),
    ("xtask", &[]),
];

/// Libraries that only some crates may use directly.
const LIBRARIES: &[(&str, &[&str])] = &[
    ("axum", &["multitap-serve", "multitap-testkit"]),
    ("hyper", &["multitap-serve"]),
    ("tower-http", &["multitap-serve"]),
    ("genai", &["multitap-agent"]),
    ("rmcp", &["multitap-bridge", "multitap-agent"]),
    ("sqlx", &["multitap-store"]),
    ("rusqlite", &["multitap-store"]),
    ("ratatui", &["multitap-tui"]),
    ("ignore", &["multitap-agent", "multitap-tui"]),
    ("nucleo-matcher", &["multitap-tui"]),
    ("qrcode", &["multitap-tui"]),
    ("grep-searcher", &["multitap-agent"]),
    ("process-wrap", &["multitap-process"]),
    ("reqwest", &["multitap-a2a", "multitap-agent", "multitap-bridge", "multitap-outbound", "multitap-serve"]),
    ("rustls-platform-verifier", &["multitap-outbound"]),
    ("landlock", &["multitap-agent"]),
    ("nix", &["multitap-agent", "multitap-process"]),
    ("anyhow", &["multitap", "multitap-testkit", "xtask"]),
    ("clap", &["multitap", "xtask"]),
];

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap().to_owned()
}

#[expect(clippy::disallowed_methods, reason = "cargo itself, to ask what the workspace looks like")]
fn packages() -> Vec<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = std::process::Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// What each package depends on, tests apart.
fn dependencies(package: &Value) -> BTreeSet<String> {
    let all = package["dependencies"].as_array().unwrap().iter();
    let ours = all.filter(|dependency| dependency["kind"] != "dev");
    ours.map(|dependency| dependency["name"].as_str().unwrap().to_owned()).collect()
}

fn name(package: &Value) -> String {
    package["name"].as_str().unwrap().to_owned()
}

#[test]
fn crates_know_only_whom_they_may() {
    let packages = packages();
    let names: BTreeSet<String> = packages.iter().map(name).collect();
    let edges: BTreeMap<&str, BTreeSet<&str>> =
        EDGES.iter().map(|(from, to)| (*from, to.iter().copied().collect())).collect();
    assert_eq!(
        names.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        edges.keys().copied().collect(),
        "a new crate needs a row here"
    );
    for package in &packages {
        let from = name(package);
        let known: BTreeSet<String> = dependencies(package).intersection(&names).cloned().collect();
        for to in &known {
            assert!(edges[from.as_str()].contains(to.as_str()), "{from} must not know {to}");
        }
    }
}

#[test]
fn testkit_is_for_tests() {
    for package in packages() {
        let from = name(&package);
        let shipped = from.starts_with("multitap");
        assert!(!shipped || !dependencies(&package).contains("multitap-testkit"), "{from} ships the testkit");
    }
}

#[test]
fn libraries_stay_where_they_belong() {
    for package in packages() {
        let from = name(&package);
        let used = dependencies(&package);
        for (library, users) in LIBRARIES {
            assert!(!used.contains(*library) || users.contains(&from.as_str()), "{from} must not use {library}");
        }
    }
}

#[test]
fn the_vocabulary_does_no_io() {
    let packages = packages();
    let event = packages.iter().find(|package| package["name"] == "multitap-event").unwrap();
    let dependencies = event["dependencies"].as_array().unwrap().iter();
    let tokio = dependencies.filter(|dependency| dependency["kind"] != "dev").find(|found| found["name"] == "tokio");
    let tokio = tokio.unwrap();
    assert_eq!(tokio["uses_default_features"], false);
    assert_eq!(tokio["features"], serde_json::json!(["sync"]));
}

/// Every Rust file that is shipped, with its path from the root.
fn shipped() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for member in fs::read_dir(root().join("crates")).unwrap() {
        collect(&member.unwrap().path().join("src"), &mut files);
    }
    files
}

fn collect(folder: &Path, files: &mut Vec<(String, String)>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let shown = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
            files.push((shown, fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn children_start_in_one_place() {
    for (path, text) in shipped() {
        let may = path.contains("crates/process/") || path.contains("crates/testkit/");
        for words in ["Command::new(", "CommandWrap::", "posix_spawn", "std::process::Command", "tokio::process"] {
            let is_used = text.match_indices(words).any(|(at, _)| !text[..at].ends_with(char::is_alphanumeric));
            assert!(may || !is_used, "{path} has {words}: children start in multitap-process");
        }
    }
}

#[test]
fn nothing_is_unsafe_and_no_lint_is_switched_off_without_a_reason() {
    for (path, text) in shipped() {
        assert!(!text.contains("unsafe {") && !text.contains("unsafe fn"), "{path} is unsafe");
        assert!(!text.contains("#[allow(") && !text.contains("#![allow("), "{path}: use expect, with a reason");
        assert!(!path.ends_with("/mod.rs"), "{path}: a folder stands beside its file");
    }
}

#[test]
fn every_crate_takes_the_workspace_lints() {
    for member in fs::read_dir(root().join("crates")).unwrap() {
        let manifest = member.unwrap().path().join("Cargo.toml");
        let text = fs::read_to_string(&manifest).unwrap();
        assert!(text.contains("[lints]\nworkspace = true"), "{}", manifest.display());
        assert!(text.contains("license.workspace = true"), "{}", manifest.display());
    }
}

/// Crates whose exported types may share names with other crates: the A2A language has the protocol's own names, and
/// the testkit is not shipped.
const SEPARATE: [&str; 2] = ["a2a", "testkit"];

#[test]
fn exported_types_have_names_of_their_own() {
    let mut exporters: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for member in fs::read_dir(root().join("crates")).unwrap() {
        let (folder, name) = member.map(|member| (member.path().join("src"), member.file_name())).unwrap();
        let name = name.into_string().unwrap();
        let lib = folder.join("lib.rs");
        if SEPARATE.contains(&name.as_str()) || !lib.exists() {
            continue;
        }
        let mut files = Vec::new();
        collect(&folder, &mut files);
        let source: String = files.into_iter().map(|(_, text)| text).collect();
        let mut exported = BTreeSet::new();
        exports(&lib, &mut exported);
        // What a crate only passes on from another one has that one's name.
        let defines = |name: &String| {
            ["struct", "enum", "trait", "type"].iter().any(|kind| contains_phrase(&source, &format!("{kind} {name}")))
        };
        for exported in exported.into_iter().filter(defines) {
            exporters.entry(exported).or_default().push(name.clone());
        }
    }
    let shared = exporters.iter().filter(|(_, crates)| crates.len() > 1);
    let shared: Vec<_> = shared.collect();
    assert!(shared.is_empty(), "exported by several crates: {shared:?}");
}

/// The types that a file exports by `pub use`, and those of the public modules below it.
fn exports(file: &Path, exported: &mut BTreeSet<String>) {
    let text = fs::read_to_string(file).unwrap();
    let is_type = |word: &&str| {
        word.starts_with(|first: char| first.is_ascii_uppercase()) && word.contains(|c: char| c.is_ascii_lowercase())
    };
    for statement in text.split("\npub use ").skip(1).filter_map(|rest| rest.split(';').next()) {
        if statement.starts_with("multitap_") {
            continue;
        }
        // `First as Second` exports the second.
        let words: Vec<&str> = statement.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        let renamed: BTreeSet<&str> = words.windows(2).filter(|pair| pair[1] == "as").map(|pair| pair[0]).collect();
        let types = words.iter().filter(|word| is_type(word) && !renamed.contains(**word));
        exported.extend(types.map(|word| (*word).to_owned()));
    }
    for module in text.split("\npub mod ").skip(1).filter_map(|rest| rest.split(';').next()) {
        let Some(file) = file.parent().map(|folder| folder.join(format!("{module}.rs"))).filter(|file| file.exists())
        else {
            continue;
        };
        let text = fs::read_to_string(&file).unwrap();
        for kind in ["struct", "enum", "trait", "type"] {
            for rest in text.split(&format!("\npub {kind} ")).skip(1) {
                exported.extend(rest.split(|c: char| !c.is_alphanumeric()).next().map(str::to_owned));
            }
        }
        exports(&file, exported);
    }
}

/// Words that say less than the usual one, which stands beside each.
const WORDS: &[(&str, &str)] = &[
    ("take up", "resume"),
    ("takes up", "resume"),
    ("taken up", "resume"),
    ("took up", "resume"),
    ("taking up", "resume"),
    ("is heard of", "is reported"),
    ("cut off", "interrupted"),
    ("put away", "delete, archive"),
    ("puts away", "delete, archive"),
    ("send away", "kick"),
    ("sends away", "kick"),
    ("sent away", "kick"),
    ("made anew", "regenerate"),
    ("makes anew", "regenerate"),
    ("at rest", "idle"),
    ("mend", "fix"),
    ("mends", "fix"),
    ("mended", "fix"),
    ("mould", "template"),
    ("moulds", "template"),
    ("taken back", "withdrawn, unselected"),
];

/// Where such words still stand, and how often at most. The numbers only ever go down.
const STILL_USED: &[(&str, usize)] = &[
    ("ARCHITECTURE.md", 1),
    ("CONTRIBUTING.md", 1),
    ("README.md", 1),
    ("crates/bridge", 2),
    ("crates/cli", 2),
    ("crates/serve", 9),
    ("docs", 14),
];

#[test]
fn the_usual_words_are_used() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in shipped().into_iter().chain(documents()) {
        let place = path.split('/').take(2).collect::<Vec<_>>().join("/");
        let place = if path.starts_with("docs/") { "docs".to_owned() } else { place };
        for (number, line) in text.lines().enumerate() {
            let line = line.to_lowercase().replace('_', " ");
            for (word, instead) in WORDS.iter().filter(|(word, _)| contains_phrase(&line, word)) {
                let hit = format!("{path}:{}: '{word}': say {instead}", number + 1);
                found.entry(place.clone()).or_default().push(hit);
            }
        }
    }
    for (place, hits) in found {
        let most = STILL_USED.iter().find(|(known, _)| *known == place).map_or(0, |(_, most)| *most);
        assert!(
            hits.len() <= most,
            "{place} may have {most} of these words, and has {}:\n{}",
            hits.len(),
            hits.join("\n")
        );
    }
}

/// Every page for users, with its path from the root.
fn documents() -> Vec<(String, String)> {
    let pages = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = pages.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let pages = pages.chain(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    let page = |path: PathBuf| {
        let shown = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
        (shown, fs::read_to_string(&path).unwrap())
    };
    pages.map(page).collect()
}

/// Whether the words stand there as whole words.
fn contains_phrase(text: &str, words: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(words)
        .any(|(start, found)| !text[..start].ends_with(is_part) && !text[start + found.len()..].starts_with(is_part))
}
