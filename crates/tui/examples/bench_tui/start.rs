//! From the start of the program to its first frame, in a terminal that `script` makes.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Outcome, row};

const GOAL: Duration = Duration::from_millis(50);
const STARTS: usize = 10;
/// Told by the shell just before it becomes the program.
const BEGUN: &str = "bench begins";
/// On the first frame.
const DRAWN: &str = "ask for something";

pub(crate) fn measure(program: &str) -> Outcome<()> {
    if !cfg!(target_os = "linux") {
        println!("start to first frame: not measured here, it needs the `script` of Linux");
        return Ok(());
    }
    println!("start to first frame, {STARTS} times");
    let home = std::env::temp_dir().join(format!("multitap-bench-{}", std::process::id()));
    std::fs::create_dir_all(&home)?;
    let times: Outcome<Vec<Duration>> = (0..STARTS).map(|_| once(program, &home)).collect();
    std::fs::remove_dir_all(&home)?;
    let mut times = times?;
    // The first makes the log's file.
    row("the first time", &mut times[..1], None);
    row("once there is a log", &mut times[1..], Some(GOAL));
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a bench starts the program as a shell does")]
fn once(program: &str, home: &std::path::Path) -> Outcome<Duration> {
    let line = format!(
        "stty cols 120 rows 40; printf '{BEGUN}'; cd '{0}'; MULTITAP_HOME='{0}' HOME='{0}' exec '{program}' --agent builtin --model rehearsal",
        home.display()
    );
    let mut command = Command::new("script");
    command.args(["-qfec", &line, "/dev/null"]).env("TERM", "xterm-256color");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let (Some(mut stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("script has no pipes".into());
    };
    let (mut seen, mut began, mut answered) = (String::new(), None, 0);
    let mut bytes = [0; 4096];
    let took = loop {
        let read = stdout.read(&mut bytes)?;
        if read == 0 {
            return Err(format!("{program} drew nothing: {seen}").into());
        }
        seen.push_str(&String::from_utf8_lossy(&bytes[..read]));
        if began.is_none() && seen.contains(BEGUN) {
            began = Some(Instant::now());
        }
        // A terminal answers when it is asked what it is.
        if seen.matches("\x1b[c").count() > answered {
            answered += 1;
            stdin.write_all(b"\x1b[?62;22c")?;
        }
        if let Some(began) = began.filter(|_| seen.contains(DRAWN)) {
            break began.elapsed();
        }
    };
    // Ctrl+D quits.
    stdin.write_all(b"\x04")?;
    while stdout.read(&mut bytes)? > 0 {}
    child.wait()?;
    Ok(took)
}
