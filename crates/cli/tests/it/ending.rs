//! SIGTERM ends the program in time, whatever holds it up.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use multitap_testkit::fake::Fake;
use multitap_testkit::wait::{descendants, until_blocking};

use crate::scene::{PATIENCE, Scene};

/// Five seconds are promised; the rest is for a busy machine.
const IN_TIME: Duration = Duration::from_secs(12);

/// A child that is killed with the test.
struct Host(Child);

impl Drop for Host {
    fn drop(&mut self) {
        self.0.kill().ok(); // most are gone by then
        self.0.wait().ok();
    }
}

fn kill(scene: &Scene, signal: &str, pid: u32) {
    let status = scene.scratch.command("/bin/kill").args([signal, &pid.to_string()]).status().unwrap();
    assert!(status.success());
}

#[track_caller]
fn ends_in_time(scene: &Scene, host: &mut Host) {
    let begun = Instant::now();
    let ended = until_blocking("its end", PATIENCE, || host.0.try_wait().unwrap());
    assert!(ended.is_ok() && begun.elapsed() < IN_TIME, "{ended:?} after {:?}", begun.elapsed());
    scene.nothing_left();
}

/// Whether the host answers.
fn answers(port: u16) -> bool {
    let ask = || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
        write!(stream, "GET /healthz HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = [0; 16];
        stream.read_exact(&mut answer).ok()
    };
    ask().is_some()
}

/// Logs are written where they arise. With a stderr that nobody reads, every thread of the runtime waits in a `write`.
#[test]
fn a_host_whose_threads_are_all_stuck_ends() {
    let mut scene = Scene::bare();
    scene.scratch.set("MULTITAP_LOG", "trace");
    let mut command: Command = scene.command(&["serve", "--port", "0", "--agent", "builtin", "--model", "rehearsal"]);
    let mut host = Host(command.stdin(Stdio::null()).spawn().unwrap());
    let mut line = String::new();
    let mut stdout = std::io::BufReader::new(host.0.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
    let port = line.trim().rsplit_once(':').unwrap().1.parse().unwrap();
    let stuck = || (0..200).any(|_| !answers(port)).then_some(());
    until_blocking("the log to fill the pipe", PATIENCE * 4, stuck).unwrap();
    let pid = host.0.id();
    kill(&scene, "-TERM", pid);
    ends_in_time(&scene, &mut host);
}

#[test]
fn a_host_with_an_agent_that_does_not_end_ends() {
    let fake = Fake::hangs().unwrap();
    let scene = Scene::with(&fake);
    for signal in ["-TERM", "-STOP"] {
        let mut command = scene.command(&["-p", "hi", "--agent", "claude", "--output-format", "stream-json"]);
        let mut host = Host(command.stdin(Stdio::null()).spawn().unwrap());
        let pid = host.0.id();
        let started = || {
            let agent = |command: &str| command.contains("hangs") && !command.contains("__child");
            descendants(pid).iter().any(|process| agent(&process.command)).then_some(())
        };
        until_blocking("the agent to start", PATIENCE, started).unwrap();
        if signal == "-STOP" {
            // Its supervisors too, so that nobody is there to obey.
            for process in descendants(pid) {
                kill(&scene, signal, process.pid);
            }
        }
        kill(&scene, "-TERM", pid);
        ends_in_time(&scene, &mut host);
    }
}

#[test]
fn a_host_whose_output_nobody_reads_ends() {
    let scene = Scene::bare();
    let noise = "run: yes | head -c 4000000; sleep 600";
    let mut command = scene.command(&[
        "-p",
        noise,
        "--agent",
        "builtin",
        "--model",
        "rehearsal",
        "--approval-mode",
        "auto-all",
        "--output-format",
        "stream-json",
    ]);
    let mut host = Host(command.stdin(Stdio::null()).spawn().unwrap());
    let pid = host.0.id();
    // The command writes more than the pipe takes.
    let runs = || descendants(pid).iter().any(|process| process.command.contains("yes")).then_some(());
    until_blocking("the command to run", PATIENCE, runs).unwrap();
    kill(&scene, "-TERM", pid);
    ends_in_time(&scene, &mut host);
}

#[test]
fn a_second_termination_ends_at_once() {
    let fake = Fake::hangs().unwrap();
    let scene = Scene::with(&fake);
    let mut command = scene.command(&["-p", "hi", "--agent", "claude", "--output-format", "stream-json"]);
    let mut host = Host(command.stdin(Stdio::null()).spawn().unwrap());
    let pid = host.0.id();
    let started = || descendants(pid).iter().any(|process| process.command.contains("hangs")).then_some(());
    until_blocking("the agent to start", PATIENCE, started).unwrap();
    kill(&scene, "-TERM", pid);
    // Two signals of a kind that come together are one to the kernel.
    std::thread::sleep(Duration::from_millis(300));
    if host.0.try_wait().unwrap().is_none() {
        kill(&scene, "-TERM", pid);
    }
    ends_in_time(&scene, &mut host);
}
