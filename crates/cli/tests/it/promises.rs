//! What the documents and the reports promise, held against the program itself.

use std::fs;
use std::path::Path;

use multitap_event::{AgentType, ApprovalMode};
use multitap_testkit::Scratch;
use multitap_testkit::fake::Fake;
use serde_json::{Value, json};

use crate::interop::agent::Agent;
use crate::scene::{MULTITAP, Scene};

fn document(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("docs");
    fs::read_to_string(docs.join(name)).unwrap()
}

/// The cells of the table whose head begins with that cell.
fn table(text: &str, head: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let rows = text.lines().skip_while(|line| !line.starts_with(&format!("| {head} |"))).skip(2);
    rows.take_while(|line| line.starts_with('|')).map(cells).collect()
}

/// The first word in code of a cell, if there is one.
fn word(cell: &str) -> Option<String> {
    cell.split('`').nth(1).map(str::to_owned)
}

/// R002-95: the mode tables for users say what the program does.
#[test]
fn the_mode_tables_are_those_of_the_program() {
    let native = |mode: ApprovalMode, agent| mode.native(agent).map(|native| native.word.to_owned());
    let headless = table(&document("headless.md"), "`--approval-mode`");
    let modes: Vec<Option<String>> = headless.iter().map(|row| word(&row[0])).collect();
    assert_eq!(modes, ApprovalMode::ALL.map(|mode| Some(mode.option_word().to_owned())));
    for (row, mode) in headless.iter().zip(ApprovalMode::ALL) {
        for (cell, agent) in row[2..].iter().zip([AgentType::Claude, AgentType::Codex, AgentType::Gemini]) {
            assert_eq!(word(cell), native(mode, agent), "headless.md, {mode} of {agent}");
        }
    }
    for agent in [AgentType::Claude, AgentType::Codex, AgentType::Gemini] {
        let rows = table(&document(&format!("native/{agent}.md")), "Multitap");
        for mode in ApprovalMode::ALL {
            let row = rows.iter().find(|row| word(&row[0]).as_deref() == Some(mode.as_str()));
            let row = row.unwrap_or_else(|| panic!("native/{agent}.md says nothing of {mode}"));
            assert_eq!(word(&row[1]), native(mode, agent), "native/{agent}.md, {mode}");
            assert_eq!(row[1].is_empty(), row[2].starts_with("an error"), "native/{agent}.md, {mode}");
            let sandbox = mode.native(agent).and_then(|native| native.sandbox);
            let told = row[1].split('`').nth(3).map(str::to_owned);
            assert_eq!(told, sandbox.map(|sandbox| sandbox.option_word().to_owned()), "native/{agent}.md, {mode}");
        }
    }
}

/// The features of `agents --json`, and the scenario that shows each with the real agent.
const SHOWN: &[(&str, &str)] = &[
    ("structuredOutput", "the_answer_fits_a_schema"),
    ("resume", "resume_in_a_new_process"),
    ("resumeAtMessage", "resume_at_a_message"),
    ("fork", "fork_in_a_new_process"),
    ("partialText", "deltas_come_once"),
    ("reasoning", "thinking_is_told"),
    ("mcp", "an_mcp_tool_is_called"),
    ("permissionQuestions", "a_command_is_allowed_once"),
    ("cancel", "cancel_in_a_running_tool"),
    ("setMode", "mode_and_model_change_while_it_runs"),
    ("setModel", "mode_and_model_change_while_it_runs"),
    ("images", "a_picture_reaches_the_model"),
];

/// R002-96: what an agent is said to have is what the table of scenarios shows with it, no more and no less. Of ACP
/// agents only what all of them have is said.
#[test]
fn features_are_those_that_the_scenarios_show() {
    let text = Scene::bare().run(&["agents", "--json"]).exits(0).stdout;
    let report: Value = serde_json::from_str(&text).unwrap();
    let agents = report["agents"].as_array().unwrap();
    for agent in Agent::ALL {
        let told = agents.iter().find(|told| told["name"] == agent.word()).unwrap();
        let claims = |feature: &str| told["features"][feature].as_bool().unwrap_or_else(|| panic!("no {feature}"));
        for (feature, row) in SHOWN {
            let shown = agent.cannot(row).is_none();
            assert!(!claims(feature) || shown, "{agent:?} claims {feature}, and {row} does not show it");
            assert!(claims(feature) || !shown || agent == Agent::Acp, "{agent:?} does not tell of its {feature}");
        }
        assert_eq!(claims("editedApproval"), agent.takes_other_content(), "{agent:?}");
        if agent != Agent::Acp {
            assert_eq!((claims("cost"), claims("usagePerModel")), agent.counts(), "{agent:?}");
        }
        let known =
            SHOWN.iter().map(|(feature, _)| *feature).chain(["editedApproval", "cost", "usagePerModel", "hooks"]);
        assert_eq!(told["features"].as_object().unwrap().len(), known.count(), "a feature that nothing shows");
    }
}

/// What a program that notes its arguments was started with.
fn arguments(agent: &str, options: &[&str]) -> String {
    let mut scratch = Scratch::without_model().unwrap();
    let note = scratch.root().join("arguments");
    let program = Fake::shell(agent, &format!("echo \"$*\" >> '{}'", note.display())).unwrap();
    scratch.set(&format!("MULTITAP_{}_BIN", agent.to_uppercase()), program.program());
    let home = scratch.root().join("multitap");
    fs::create_dir(&home).unwrap();
    // As a process for each turn, where everything is an argument; Claude has one form only.
    let transport = if agent == "claude" { "default" } else { "oneShot" };
    let settings = json!({ "agents": { agent: { "transport": transport } } });
    fs::write(home.join("settings.json"), settings.to_string()).unwrap();
    scratch.set("MULTITAP_HOME", home);
    let mut command = scratch.command(MULTITAP);
    command.args(["-p", "hi there", "--agent", agent]).args(options);
    let output = command.output().unwrap();
    let noted = fs::read_to_string(&note).unwrap_or_default();
    format!("{noted}{}", String::from_utf8_lossy(&output.stderr))
}

/// R002-92: one unified option, and what each CLI is started with for it; or the refusal.
#[test]
fn one_option_for_all() {
    let table = [
        (&[][..], ["-p --input-format stream-json --output-format stream-json", "exec --json", "-o stream-json"]),
        (
            &["--approval-mode", "auto-all"][..],
            ["--permission-mode bypassPermissions", "approval_policy=\"never\"", "--approval-mode yolo"],
        ),
        (&["-r", "0f9"][..], ["--resume 0f9", "resume", "no conversation 0f9"]),
        (&["--allow-tool", "Read"][..], ["--allowedTools Read", "codex cannot honour allowed tools", "--admin-policy"]),
        (&["--model", "m1"][..], ["--model m1", "-m m1", "--model m1"]),
    ];
    for (options, wanted) in table {
        for (agent, wanted) in ["claude", "codex", "gemini"].into_iter().zip(wanted) {
            let noted = arguments(agent, options);
            assert!(noted.contains(wanted), "{agent} {options:?}: no '{wanted}' in\n{noted}");
        }
    }
}
