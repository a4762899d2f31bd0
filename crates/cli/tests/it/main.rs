//! The binary as its users meet it: its command line, its exit codes, what it prints, what it leaves behind.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

#[cfg(unix)]
mod a2a;
#[cfg(unix)]
mod a2a_client;
#[cfg(unix)]
mod acp;
#[cfg(unix)]
mod attach;
#[cfg(unix)]
mod bad_programs;
#[cfg(unix)]
mod contract;
#[cfg(unix)]
mod crash;
#[cfg(unix)]
mod decode;
#[cfg(unix)]
mod edited;
#[cfg(target_os = "linux")]
mod ending;
#[cfg(unix)]
mod headless;
#[cfg(unix)]
mod interop;
#[cfg(unix)]
mod kept;
#[cfg(target_os = "linux")]
mod kill;
#[cfg(unix)]
mod lines;
#[cfg(unix)]
mod mcp;
#[cfg(unix)]
mod old_log;
#[cfg(unix)]
mod promises;
#[cfg(unix)]
mod rehearsal;
#[cfg(unix)]
mod remote_agents;
#[cfg(unix)]
mod resumed;
#[cfg(unix)]
mod scene;
#[cfg(unix)]
mod serve;
#[cfg(unix)]
mod sessions;
#[cfg(unix)]
mod settings;
#[cfg(target_os = "linux")]
mod shell_lines;
#[cfg(unix)]
mod terminal;
mod tidy;
#[cfg(unix)]
mod trust;
#[cfg(unix)]
mod turn_by_turn;
#[cfg(target_os = "linux")]
mod way_out;
