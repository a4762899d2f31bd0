//! What tests start commands with: the supervisor and the way into the sandbox, as the product's binary has them.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(first) if first == multitap_process::SUPERVISE => multitap_process::supervise(args),
        Some(first) if first == multitap_agent::SANDBOXED => multitap_agent::sandboxed(args),
        _ => ExitCode::FAILURE,
    }
}
