//! A program that keeps its children itself: it is its own supervisor.
//!
//! `keeper PROGRAM [ARGS…]` runs a program, passes its output on, and ends as it ended. However `keeper` itself ends,
//! nothing of the program is left. With `KEEPER=group` it keeps the program in a process group instead.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use multitap_process::{Keeper, Line, Program, SUPERVISE, StdinMode, spawn, supervise};

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut args = env::args_os().skip(1).peekable();
    if args.next_if(|arg| arg == SUPERVISE).is_some() {
        return Ok(supervise(args));
    }
    let program = args.next().ok_or("usage: keeper PROGRAM [ARGS…]")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(keep(program, args.collect()))
}

async fn keep(program: OsString, args: Vec<OsString>) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let program = Program {
        program: program.into(),
        args,
        env: Vec::new(),
        env_remove: Vec::new(),
        cwd: None,
        stdin: StdinMode::Null,
    };
    let keeper = match env::var("KEEPER").as_deref() {
        Ok("group") => Keeper::Group,
        _ => Keeper::own_binary()?,
    };
    let mut child = spawn(program, &keeper).await?;
    while let Some(line) = child.stdout.next().await? {
        match line {
            Line::Text(text) => writeln!(io::stdout(), "{text}")?,
            Line::TooLong { head, bytes } => writeln!(io::stdout(), "{head}… ({bytes} bytes)")?,
        }
    }
    let exit = child.wait().await;
    if !exit.stderr_tail.is_empty() {
        writeln!(io::stderr(), "{}", exit.stderr_tail)?;
    }
    writeln!(io::stderr(), "{exit}")?;
    Ok(if exit.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
