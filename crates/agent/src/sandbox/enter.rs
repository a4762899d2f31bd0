//! Enters the sandbox, in the process that becomes the command. It has one thread.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use rustix::fs::StatVfsMountFlags;

use super::{Enforced, FileAccess, NetworkAccess};

/// The first ABI that also restricts truncation.
const FILES: ABI = ABI::V3;
/// The first ABI with TCP rights.
const TCP: ABI = ABI::V4;
/// Devices that every program may write to, since nothing is stored there.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
const SHARED_MEMORY: &str = "/dev/shm";

const NOTHING: Option<&str> = None;

#[derive(Default)]
struct SandboxArgs {
    enforced: Enforced,
    write: Vec<PathBuf>,
    hide: Vec<PathBuf>,
    protect: Vec<PathBuf>,
    program: OsString,
}

/// Becomes the command; returns why it could not.
pub(super) fn enter(mut args: impl Iterator<Item = OsString>) -> String {
    let entered = SandboxArgs::read(&mut args).and_then(|orders| {
        orders.apply()?;
        Ok(orders.program)
    });
    match entered {
        Ok(program) => {
            let shown = program.to_string_lossy().into_owned();
            format!("cannot start {shown} in the sandbox: {}", multitap_process::replace(program, args))
        }
        Err(why) => why,
    }
}

impl SandboxArgs {
    fn read(args: &mut impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut orders = Self::default();
        while let Some(option) = args.next() {
            let Some(value) = args.next() else { return Err(format!("no value for {}", option.display())) };
            match option.to_str() {
                Some("--") => return Ok(Self { program: value, ..orders }),
                Some("--write") => orders.write.push(value.into()),
                Some("--hide") => orders.hide.push(value.into()),
                Some("--protect") => orders.protect.push(value.into()),
                Some("--enforce") => {
                    let enforced = serde_json::from_str(&value.to_string_lossy());
                    orders.enforced = enforced.map_err(|error| format!("unknown value for --enforce: {error}"))?;
                }
                _ => return Err(format!("unknown option {}", option.display())),
            }
        }
        Err("no program was named".to_owned())
    }

    /// Applies the restrictions. The namespaces come first: afterwards there is no right to create them.
    fn apply(&self) -> Result<(), String> {
        if self.enforced.network == NetworkAccess::Nothing {
            // Sockets are listed for the network that we are about to leave.
            let sockets = self.sockets_of_others();
            own_namespaces()?;
            // Our mounts must not show outside. Some systems allow namespaces and forbid mounts.
            if mount(NOTHING, "/", NOTHING, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NOTHING).is_ok() {
                self.protect();
                hide(&self.hide, &sockets);
            }
        }
        if self.enforced.files != FileAccess::Open || self.enforced.network == NetworkAccess::NoTcp {
            let status = self.restrict().map_err(|error| format!("Landlock: {error}"))?;
            if status == RulesetStatus::NotEnforced {
                return Err("Landlock: this kernel does not enforce it".to_owned());
            }
        }
        Ok(())
    }

    /// Makes the protected folders read-only where they lie in a writable one. Without this a command could change what
    /// the next session runs outside the sandbox.
    fn protect(&self) {
        let here = std::env::current_dir();
        let roots: Vec<PathBuf> = self.write.iter().filter_map(|root| root.canonicalize().ok()).collect();
        for folder in &self.protect {
            // A missing folder could be created by the command.
            fs::create_dir_all(folder).ok();
            let Ok(folder) = folder.canonicalize() else { continue };
            let is_around = |root: &&PathBuf| folder.starts_with(root);
            let Some(root) = roots.iter().filter(is_around).min_by_key(|root| root.as_os_str().len()) else {
                continue;
            };
            if roots.iter().any(|root| root.starts_with(&folder)) {
                // The workspace lies in the protected folder.
                continue;
            }
            // The folders above it are mounted as well: a mounted folder can be neither renamed nor deleted.
            let mut places: Vec<&Path> = folder.ancestors().take_while(|place| place != root).collect();
            places.reverse();
            for place in places {
                mount(Some(place), place, NOTHING, MsFlags::MS_BIND | MsFlags::MS_REC, NOTHING).ok();
            }
            make_read_only(&folder);
        }
        // A mount over the current folder takes effect for this process only when it enters the folder again.
        here.and_then(std::env::set_current_dir).ok();
    }

    /// Unix sockets on which programs listen now, except those in the workspace. Landlock does not restrict
    /// connections to them, and some of these programs start others: tmux, the user's service manager, Docker.
    fn sockets_of_others(&self) -> BTreeSet<PathBuf> {
        let table = fs::read("/proc/net/unix").unwrap_or_default();
        let table = String::from_utf8_lossy(&table);
        let path = |line: &str| line.find(" /").map(|place| PathBuf::from(&line[place + 1..]));
        let temporary = std::env::temp_dir();
        let of_workspace = |socket: &Path| {
            let mut folders = self.write.iter().filter(|folder| **folder != temporary);
            folders.any(|folder| socket.starts_with(folder))
        };
        table.lines().filter_map(path).filter(|socket| !of_workspace(socket)).collect()
    }

    fn restrict(&self) -> Result<RulesetStatus, Box<dyn std::error::Error>> {
        let mut rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        if self.enforced.files != FileAccess::Open {
            rules = rules.handle_access(AccessFs::from_all(FILES))?;
        }
        if self.enforced.network == NetworkAccess::NoTcp {
            rules = rules.handle_access(AccessNet::from_all(TCP))?;
        }
        // Where the kernel supports it, commands cannot signal processes outside, such as their supervisor, nor
        // connect to abstract sockets there, such as that of an X server.
        rules = rules.set_compatibility(CompatLevel::BestEffort).scope(Scope::Signal | Scope::AbstractUnixSocket)?;
        let mut rules = rules.create()?.set_compatibility(CompatLevel::HardRequirement);
        if self.enforced.files != FileAccess::Open {
            rules = rules.add_rule(PathBeneath::new(PathFd::new("/")?, AccessFs::from_read(FILES)))?;
            for device in DEVICES.iter().filter(|device| Path::new(device).exists()) {
                rules = rules.add_rule(PathBeneath::new(PathFd::new(device)?, AccessFs::from_file(FILES)))?;
            }
        }
        if self.enforced.files == FileAccess::WorkspaceWrite {
            let memory = Some(Path::new(SHARED_MEMORY)).filter(|memory| memory.is_dir());
            for folder in self.write.iter().map(PathBuf::as_path).chain(memory) {
                rules = rules.add_rule(PathBeneath::new(PathFd::new(folder)?, AccessFs::from_all(FILES)))?;
            }
        }
        Ok(rules.restrict_self()?.ruleset)
    }
}

/// Enters an empty network namespace, and a mount namespace where available, as the same user.
fn own_namespaces() -> Result<(), String> {
    let (user, group) = (nix::unistd::getuid(), nix::unistd::getgid());
    let flags = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET;
    unshare(flags | CloneFlags::CLONE_NEWNS)
        .or_else(|_| unshare(flags))
        .map_err(|error| format!("no network namespace: {}", error.desc()))?;
    let write = |file: &str, text: String| {
        fs::write(format!("/proc/self/{file}"), text)
            .map_err(|error| format!("no user in the namespace: {file}: {error}"))
    };
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("{user} {user} 1"))?;
    write("gid_map", format!("{group} {group} 1"))
}

/// Makes a mounted folder read-only. A namespace of a user may not clear the flags of the mount below, so they stay.
fn make_read_only(folder: &Path) {
    const FLAGS: [(StatVfsMountFlags, MsFlags); 5] = [
        (StatVfsMountFlags::NOSUID, MsFlags::MS_NOSUID),
        (StatVfsMountFlags::NODEV, MsFlags::MS_NODEV),
        (StatVfsMountFlags::NOEXEC, MsFlags::MS_NOEXEC),
        (StatVfsMountFlags::NOATIME, MsFlags::MS_NOATIME),
        (StatVfsMountFlags::NODIRATIME, MsFlags::MS_NODIRATIME),
    ];
    let Ok(below) = rustix::fs::statvfs(folder) else { return };
    let kept = FLAGS.into_iter().filter(|(flag, _)| below.f_flag.contains(*flag)).map(|(_, flag)| flag);
    let flags = kept.fold(MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY, |all, flag| all | flag);
    mount(NOTHING, folder, NOTHING, flags, NOTHING).ok();
}

/// Mounts an empty folder over each folder and an empty file over each socket. Landlock, which is applied next,
/// prevents unmounting. Best effort: hosts refuse connections from commands in any case.
///
/// Best effort: hosts refuse connections from commands either way.
fn hide(folders: &[PathBuf], sockets: &BTreeSet<PathBuf>) {
    let flags = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        mount(Some("multitap"), folder, Some("tmpfs"), flags, Some("size=4k,mode=000")).ok();
    }
    for socket in sockets {
        // A socket whose file is gone cannot be reached either.
        mount(Some("/dev/null"), socket, NOTHING, MsFlags::MS_BIND, NOTHING).ok();
    }
}
