//! Handles settings of MCP servers that an agent does not support: expresses them in another way, refuses them, or
//! leaves them out.
//!
//! Supported settings are translated in the agent's own folder. A setting that restricts tools is never left out.

use std::path::Path;

use multitap_event::{AgentType, McpReach, McpServer, SessionConfig, Unsupported};

use crate::info::{AgentInfo, McpAbilities};

/// The settings that an agent supports for a server of that name. The built-in agent supports all.
fn abilities(agent: AgentType, name: &str) -> McpAbilities {
    let known = AgentInfo::of(agent).map_or(McpAbilities::ALL, |info| info.mcp);
    let by_rule = !(known.rules_misread_underscores && name.contains('_'));
    McpAbilities {
        trust: known.trust && by_rule,
        exclude_tools: known.exclude_tools && by_rule,
        cwd: known.cwd || cfg!(unix),
        ..known
    }
}

/// Refuses unsupported settings that must not be left out.
pub(crate) fn check(config: &SessionConfig) -> Result<(), Unsupported> {
    let agent = config.agent.agent_type();
    for (name, server) in &config.mcp_servers {
        let known = abilities(agent, name);
        let no_rule = if known.rules_misread_underscores {
            "its rules do not apply to a server with an underscore in its name"
        } else {
            "it always uses all tools of a server"
        };
        let elsewhere = matches!(&server.reach, McpReach::Stdio { cwd: Some(_), .. });
        let given = [
            (
                "includeTools",
                !known.include_tools && server.include_tools.is_some(),
                "it always uses all tools of a server",
            ),
            ("excludeTools", !known.exclude_tools && !server.exclude_tools.is_empty(), no_rule),
            ("cwd", !known.cwd && elsewhere, "it always starts servers in its own folder"),
        ];
        if let Some((key, _, why)) = given.into_iter().find(|(_, given, _)| *given) {
            return Err(Unsupported::new(agent, format!("mcpServers.{name}.{key}"), why));
        }
    }
    Ok(())
}

/// Settings of servers that the agent does not support, and so does not get. Without them the agent asks more often, or
/// waits as long as its own settings say.
pub fn left_out(config: &SessionConfig) -> Vec<String> {
    let agent = config.agent.agent_type();
    let of = |(name, server): (&String, &McpServer)| {
        let known = abilities(agent, name);
        let left = [
            ("timeout", !known.timeout && server.timeout.is_some(), "waits as its own settings say"),
            ("trust", !known.trust && server.trust, "asks as its own settings say"),
        ];
        let left = left.into_iter().filter(|(_, left, _)| *left);
        left.map(|(key, _, does)| format!("mcpServers.{name}.{key}: {agent} does not support it and {does}"))
            .collect::<Vec<_>>()
    };
    config.mcp_servers.iter().flat_map(of).collect()
}

/// The program and its arguments for an agent that starts servers only in its own folder: a shell changes the folder
/// first.
pub(crate) fn in_folder(command: &str, args: &[String], cwd: Option<&Path>) -> (String, Vec<String>) {
    let Some(cwd) = cwd else { return (command.to_owned(), args.to_vec()) };
    let go = ["-c", r#"cd -- "$0" && exec "$@""#].map(str::to_owned);
    let words = go.into_iter().chain([cwd.display().to_string(), command.to_owned()]).chain(args.iter().cloned());
    ("/bin/sh".to_owned(), words.collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use multitap_event::AgentKind;

    use super::*;

    fn config(agent: AgentKind, change: impl Fn(&mut McpServer)) -> SessionConfig {
        let mut server = McpServer::from(McpReach::program("serve", Vec::new()));
        change(&mut server);
        SessionConfig { mcp_servers: [("x".to_owned(), server)].into(), ..SessionConfig::new(agent) }
    }

    #[test]
    fn what_keeps_tools_away_is_refused_and_comfort_is_left_out() {
        let acp = || AgentKind::Acp { command: "x".to_owned() };
        let include = |server: &mut McpServer| server.include_tools = Some(vec!["a".to_owned()]);
        let refused = check(&config(AgentKind::Claude, include)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "claude cannot honour mcpServers.x.includeTools: it always uses all tools of a server"
        );
        check(&config(AgentKind::Codex, include)).unwrap();
        let exclude = |server: &mut McpServer| server.exclude_tools = vec!["a".to_owned()];
        check(&config(acp(), exclude)).unwrap_err();
        let mut gemini = config(AgentKind::Gemini, exclude);
        check(&gemini).unwrap();
        gemini.mcp_servers = gemini.mcp_servers.into_values().map(|server| ("a_b".to_owned(), server)).collect();
        assert!(check(&gemini).unwrap_err().to_string().contains("a server with an underscore in its name"));
        let comfort = |server: &mut McpServer| {
            (server.timeout, server.trust) = (Some(Duration::from_secs(1)), true);
        };
        check(&config(acp(), comfort)).unwrap();
        assert_eq!(left_out(&config(acp(), comfort)).len(), 2);
        assert_eq!(left_out(&config(AgentKind::Gemini, comfort)).len(), 1);
        assert!(left_out(&config(AgentKind::Claude, comfort)).is_empty());
    }
}
