//! Every script in every form, to be read.

use multitap_a2a::devtool;
use multitap_testkit::script;

use super::{FORMS, script_frames};
use crate::a2a::encode::OURS;

/// Long names that stand in every frame, and say nothing new there.
const SHORT: [(&str, &str); 4] = [
    (devtool::URI, "<devtool>"),
    (OURS, "<ours>"),
    ("01a00000-0000-7000-8000-000000000001", "SESSION"),
    ("2026-01-31T12:", ""),
];

fn shown(name: &str) -> String {
    let frames = script_frames(name);
    let mut text = String::new();
    for (title, form) in FORMS {
        text.push_str(&format!("## {title}\n"));
        for frame in &frames {
            let json = SHORT.iter().fold(frame.json(form).to_string(), |json, (long, short)| json.replace(long, short));
            text.push_str(&format!("{} {json}\n", frame.cursor));
        }
    }
    text
}

#[test]
fn every_script_in_every_form() {
    for name in script::names().unwrap() {
        insta::assert_snapshot!(name.clone(), shown(&name));
    }
}
