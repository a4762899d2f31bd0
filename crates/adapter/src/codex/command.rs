//! Shell commands in Codex's format and in a readable one.

use multitap_process::quote;
use serde_json::Value;

const SHELLS: [&str; 4] = ["bash", "zsh", "sh", "dash"];

/// The command as a person would type it: without the shell in which Codex starts it.
pub(super) fn typed(command: &Value) -> String {
    let words = match command {
        Value::String(text) => match shell_words::split(text) {
            Ok(words) => words,
            Err(_) => return text.clone(),
        },
        Value::Array(words) => words.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => return String::new(),
    };
    if let [shell, flag, script] = words.as_slice() {
        let name = shell.rsplit('/').next().unwrap_or(shell);
        if SHELLS.contains(&name) && matches!(flag.as_str(), "-c" | "-lc" | "-ic" | "-lic") {
            return script.clone();
        }
    }
    match command {
        Value::String(text) => text.clone(),
        _ => quote(&words),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_shell_around_a_command_is_taken_off() {
        for (native, typed_in) in [
            (json!("/bin/bash -lc 'touch made.txt && ls'"), "touch made.txt && ls"),
            (json!(r#"/bin/zsh -lc "echo \"a\" $HOME""#), r#"echo "a" $HOME"#),
            (json!(r"bash -lc 'it'\''s'"), "it's"),
            (json!("bash -lc ls"), "ls"),
            (json!(["bash", "-lc", "npm test"]), "npm test"),
            (json!(["git", "commit", "-m", "two words"]), "git commit -m 'two words'"),
            (json!("npm test"), "npm test"),
            (json!("echo 'open"), "echo 'open"),
            (json!("python3 -c 'print(1)'"), "python3 -c 'print(1)'"),
        ] {
            assert_eq!(typed(&native), typed_in);
        }
    }
}
