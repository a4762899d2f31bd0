//! Checks what clients request for their sessions against what this host allows. Starts nothing.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use multitap_adapter::AgentInfo;
use multitap_event::{AgentKind, AgentType, ApprovalMode, ClientRole, Mode, SessionConfig};
use multitap_hub::Refusal;
use multitap_serve::Wanted;
use serde_json::{Map, Value};

use crate::settings::{self, Settings};

/// The folder of a session, with links resolved. It must exist, and lie in or below a root.
pub(super) fn workspace(wanted: Option<&Path>, roots: &[PathBuf]) -> Result<PathBuf, Refusal> {
    match wanted {
        Some(wanted) => folder("workspace_path", wanted, roots),
        None => roots.first().cloned().ok_or_else(|| Refusal::InvalidSetting {
            setting: "workspace_path".into(),
            why: "this host has no folder to work in".to_owned(),
        }),
    }
}

/// More folders for a session, under the same conditions.
pub(super) fn folders(wanted: &[PathBuf], roots: &[PathBuf]) -> Result<Vec<PathBuf>, Refusal> {
    wanted.iter().map(|wanted| folder("additional_directories", wanted, roots)).collect()
}

fn folder(setting: &'static str, wanted: &Path, roots: &[PathBuf]) -> Result<PathBuf, Refusal> {
    let refused = |why| Refusal::InvalidSetting { setting: setting.into(), why };
    let name = wanted.display();
    if !wanted.is_absolute() {
        return Err(refused(format!("{name} is not an absolute path")));
    }
    let is_inside = |path: &Path| roots.iter().any(|root| path.starts_with(root));
    let shown: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
    let outside = || refused(format!("{name} lies outside the folders of this host: {}", shown.join(", ")));
    match wanted.canonicalize() {
        Ok(real) if !is_inside(&real) => Err(outside()),
        Ok(real) if real.is_dir() => Ok(real),
        Ok(_) => Err(refused(format!("{name} is not a folder"))),
        // Do not reveal what exists elsewhere on this machine.
        Err(_) if !is_inside(wanted) || wanted.components().any(|part| part == Component::ParentDir) => Err(outside()),
        Err(_) => Err(refused(format!("there is no folder {name}"))),
    }
}

/// Whether a folder, which may have been deleted, lies in or below a root.
pub(super) fn is_inside(folder: &Path, roots: &[PathBuf]) -> bool {
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    roots.iter().any(|root| real.starts_with(root)) && !real.components().any(|part| part == Component::ParentDir)
}

/// The agent of a session, as `--agent` names it: one that this host knows by name, never a client's command. `own` is
/// the agent that this host was started with.
pub(super) fn agent(wanted: Option<&str>, own: Option<String>, settings: &Settings) -> Result<Option<String>, Refusal> {
    let Some(wanted) = wanted else { return Ok(own) };
    let own_command = own.as_ref().filter(|own| own.starts_with("acp:"));
    let is_named = wanted.parse::<AgentKind>().is_ok_and(|kind| kind.agent_type() != AgentType::Acp);
    let acp_is_set = settings.of(AgentType::Acp).command.is_some_and(|command| !command.trim().is_empty());
    match wanted {
        _ if is_named => Ok(Some(wanted.to_owned())),
        _ if own.as_deref() == Some(wanted) => Ok(own),
        "acp" if own_command.is_some() => Ok(own),
        "acp" if acp_is_set => Ok(Some(wanted.to_owned())),
        _ => {
            let acp = if own_command.is_some() || acp_is_set { ", acp" } else { "" };
            let what = if wanted.starts_with("acp:") { "a client chooses no command" } else { "it is not known here" };
            let known: Vec<&str> = AgentInfo::programs().map(|(info, _)| info.agent.as_str()).collect();
            let why = format!("{what}: the agents of this host are {}, builtin{acp}", known.join(", "));
            Err(Refusal::InvalidSetting { setting: "agent".into(), why })
        }
    }
}

/// The approval mode of a session, which may not let more run without asking than the host's mode. `own` is the host's;
/// without one, it counts as `ask`.
pub(super) fn mode(word: &str, own: Option<&Mode>, agent: AgentType) -> Result<ApprovalMode, Refusal> {
    let refused = |why| Refusal::InvalidSetting { setting: "approval_mode".into(), why };
    let most = Mode::bound(own);
    let fits = |mode: &ApprovalMode| mode.native(agent).is_some() && mode.is_within(most, agent);
    let taken = || {
        let modes: Vec<&str> =
            ApprovalMode::STRICTEST_FIRST.iter().filter(|mode| fits(mode)).map(|mode| mode.as_str()).collect();
        if modes.is_empty() { "none for this agent".to_owned() } else { modes.join(", ") }
    };
    match Mode::parse(agent, word) {
        Ok(Mode::Unified(mode)) if fits(&mode) => Ok(mode),
        Ok(Mode::Unified(mode)) if mode.native(agent).is_none() => {
            Err(refused(format!("{agent} has no mode {mode}; this host takes {}", taken())))
        }
        Ok(Mode::Unified(mode)) => {
            Err(refused(format!("{mode} runs more without asking than this host allows; it takes {}", taken())))
        }
        Ok(Mode::Native(_)) | Err(_) => Err(refused(format!("this mode is not known; this host takes {}", taken()))),
    }
}

/// Settings that let a client run its own programs, or tools without asking: only from trusted clients. Returns what
/// was ignored.
pub(super) fn extras(wanted: Wanted, trust_all: bool, config: &mut SessionConfig) -> Result<Vec<String>, Refusal> {
    let mut notices = Vec::new();
    if trust_all || wanted.by.role == Some(ClientRole::Owner) {
        let refused = |why| Refusal::InvalidSetting { setting: "mcp_servers".into(), why };
        let (servers, notes) = settings::mcp_servers(&Value::Object(wanted.open.mcp_servers)).map_err(refused)?;
        config.environment.extend(environment(wanted.open.environment)?);
        config.mcp_servers.extend(servers);
        config.allowed_tools.extend(wanted.open.allowed_tools);
        return Ok(notes);
    }
    for (setting, is_given) in [
        ("allowed_tools", !wanted.open.allowed_tools.is_empty()),
        ("mcp_servers", !wanted.open.mcp_servers.is_empty()),
        ("environment", !wanted.open.environment.is_empty()),
    ] {
        if is_given {
            notices.push(format!(
                "{setting} is ignored: this host takes it only from an owner, or if it was started with --trust-client-settings"
            ));
        }
    }
    Ok(notices)
}

fn environment(wanted: Map<String, Value>) -> Result<BTreeMap<String, String>, Refusal> {
    let variable = |(name, value): (String, Value)| {
        let is_name = !name.is_empty() && !name.contains(['=', '\0']);
        match value {
            Value::String(value) if is_name && !value.contains('\0') => Ok((name, value)),
            // The value may be a secret, so it is not repeated.
            _ => {
                let why = "each variable is a name without '=' and a text".to_owned();
                Err(Refusal::InvalidSetting { setting: "environment".into(), why })
            }
        }
    };
    wanted.into_iter().map(variable).collect()
}

#[cfg(test)]
mod tests {
    use multitap_event::{AgentKind, ClientRef, Door};
    use multitap_hub::OpenCall;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn why<T: std::fmt::Debug>(refused: Result<T, Refusal>) -> String {
        let error = refused.unwrap_err();
        assert!(matches!(error, Refusal::InvalidSetting { .. }), "{error}");
        error.to_string()
    }

    #[cfg(unix)]
    #[test]
    fn a_workspace_lies_under_a_root_whatever_links_say() {
        let place = tempfile::tempdir().unwrap();
        let real = place.path().canonicalize().unwrap();
        let (root, secret) = (real.join("root"), real.join("secret"));
        for folder in [&root, &secret, &root.join("sub"), &real.join("root-2")] {
            std::fs::create_dir(folder).unwrap();
        }
        std::fs::write(root.join("file"), "").unwrap();
        std::os::unix::fs::symlink(&secret, root.join("out")).unwrap();
        std::os::unix::fs::symlink(&root, real.join("in")).unwrap();
        let roots = [root.clone()];
        assert_eq!(workspace(None, &roots).unwrap(), root);
        assert_eq!(workspace(Some(&root), &roots).unwrap(), root);
        assert_eq!(workspace(Some(&root.join("sub/../sub")), &roots).unwrap(), root.join("sub"));
        assert_eq!(workspace(Some(&real.join("in/sub")), &roots).unwrap(), root.join("sub"), "a link to inside");
        assert_eq!(folders(&[real.join("in"), root.join("sub")], &roots).unwrap(), [root.clone(), root.join("sub")]);
        for (wanted, reported) in [
            (Path::new("sub").to_owned(), "not an absolute path"),
            (secret, "outside the folders of this host"),
            (root.join("out"), "outside"),
            (root.join("../secret"), "outside"),
            (real.join("root-2"), "outside"),
            (real.join("none"), "outside"),
            (root.join("../none"), "outside"),
            (root.join("none"), "there is no folder"),
            (root.join("file"), "not a folder"),
        ] {
            let error = why(workspace(Some(&wanted), &roots));
            assert!(error.starts_with("workspace_path: ") && error.contains(reported), "{}: {error}", wanted.display());
            let more = [root.clone(), wanted];
            let error = why(folders(&more, &roots));
            assert!(error.starts_with("additional_directories: ") && error.contains(reported), "{error}");
        }
    }

    #[test]
    fn an_agent_goes_by_a_name_of_this_host() {
        let settings = Settings::default();
        let own = || Some("acp:my agent".to_owned());
        assert_eq!(agent(None, own(), &settings).unwrap(), own());
        assert_eq!(agent(None, None, &settings).unwrap(), None);
        assert_eq!(agent(Some("codex"), own(), &settings).unwrap().as_deref(), Some("codex"));
        for word in ["acp", "acp:my agent"] {
            assert_eq!(agent(Some(word), own(), &settings).unwrap(), own(), "{word}");
        }
        let error = why(agent(Some("acp:/tmp/evil"), own(), &settings));
        assert!(error.contains("no command") && error.ends_with("builtin, acp"), "{error}");
        for word in ["acp", "acp:", "bash", "", "Claude"] {
            let error = why(agent(Some(word), None, &settings));
            assert!(error.starts_with("agent: ") && error.ends_with("builtin"), "{word}: {error}");
        }
    }

    #[test]
    fn a_mode_is_as_strict_as_the_hosts_or_stricter() {
        use ApprovalMode::{Ask, AskDangerous, AutoAll, AutoEdit, DontAsk, Plan};
        let all = |agent, own: Option<ApprovalMode>| -> Vec<ApprovalMode> {
            let own = own.map(Mode::Unified);
            let taken = |wanted: &ApprovalMode| mode(wanted.as_str(), own.as_ref(), agent).is_ok();
            ApprovalMode::STRICTEST_FIRST.into_iter().filter(taken).collect()
        };
        let builtin = AgentType::Builtin;
        assert_eq!(all(builtin, Some(Plan)), [Plan]);
        assert_eq!(all(builtin, Some(DontAsk)), [Plan, DontAsk]);
        assert_eq!(all(builtin, Some(Ask)), [Plan, DontAsk, Ask]);
        assert_eq!(all(builtin, None), [Plan, DontAsk, Ask], "who did not choose asks");
        assert_eq!(all(builtin, Some(AskDangerous)), [Plan, DontAsk, Ask, AskDangerous]);
        assert_eq!(all(builtin, Some(AutoEdit)), [Plan, DontAsk, Ask, AskDangerous, AutoEdit]);
        assert_eq!(all(builtin, Some(AutoAll)), ApprovalMode::STRICTEST_FIRST);
        assert_eq!(all(AgentType::Codex, Some(Ask)), [Plan, Ask], "it would do without asking");
        assert_eq!(all(AgentType::Codex, Some(AutoAll)), [Plan, DontAsk, Ask, AskDangerous, AutoAll]);
        assert_eq!(all(AgentType::Gemini, Some(AutoAll)), [Plan, Ask, AutoEdit, AutoAll]);
        assert_eq!(mode("auto-all", Some(&Mode::Unified(AutoAll)), builtin), Ok(AutoAll));
        let native = Mode::Native("auto".to_owned());
        assert!(mode("acceptEdits", Some(&native), AgentType::Claude).is_err());
        for (word, reported) in [("auto-all", "runs more"), ("yolo", "runs more"), ("whatever", "is not known")] {
            let error = why(mode(word, None, builtin));
            assert!(error.contains(reported) && error.ends_with("takes plan, dontAsk, ask"), "{error}");
        }
    }

    fn wanted(role: Option<ClientRole>) -> Wanted {
        let Value::Object(mcp_servers) = json!({"git": {"command": "git-mcp"}}) else { panic!("an object") };
        let Value::Object(environment) = json!({"A": "b"}) else { panic!("an object") };
        Wanted {
            by: ClientRef { role, ..ClientRef::new("test", Door::A2a) },
            open: OpenCall { allowed_tools: vec!["Bash".to_owned()], mcp_servers, environment, ..OpenCall::default() },
        }
    }

    #[test]
    fn programs_and_permissions_come_only_from_those_who_are_trusted() {
        for (role, trust_all, is_taken) in [
            (Some(ClientRole::Owner), false, true),
            (Some(ClientRole::Controller), true, true),
            (Some(ClientRole::Controller), false, false),
            (Some(ClientRole::Observer), false, false),
            (None, false, false),
        ] {
            let mut config = SessionConfig::new(AgentKind::Builtin);
            let notices = extras(wanted(role), trust_all, &mut config).unwrap();
            let taken = (config.allowed_tools.len(), config.mcp_servers.len(), config.environment.len());
            assert_eq!(taken, if is_taken { (1, 1, 1) } else { (0, 0, 0) }, "{role:?} {trust_all}");
            assert_eq!(notices.len(), if is_taken { 0 } else { 3 }, "{notices:?}");
            assert!(notices.iter().all(|notice| notice.contains("--trust-client-settings")), "{notices:?}");
        }
    }

    #[test]
    fn what_a_trusted_client_gets_wrong_is_said_without_its_secrets() {
        let mut bad = wanted(Some(ClientRole::Owner));
        bad.open.environment.insert("B=C".to_owned(), "secret".into());
        let error = why(extras(bad, false, &mut SessionConfig::new(AgentKind::Builtin)));
        assert!(error.starts_with("environment: ") && !error.contains("secret"), "{error}");
        let mut bad = wanted(Some(ClientRole::Owner));
        bad.open.mcp_servers.insert("x".to_owned(), json!({}));
        let error = why(extras(bad, false, &mut SessionConfig::new(AgentKind::Builtin)));
        assert!(error.starts_with("mcp_servers: "), "{error}");
    }
}
