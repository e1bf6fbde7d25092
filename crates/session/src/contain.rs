//! Containment by the host's kernel, in addition to the checks of `fxscope_linux`: Landlock permanently removes the
//! simulating thread's access to everything that the program may not touch.
//!
//! Landlock and `no_new_privs` apply to a thread and those it starts. A run therefore has its own thread, and the
//! calling process stays unrestricted.

use std::fmt;
use std::path::{Path, PathBuf};

use fxscope_linux::Access;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, LandlockStatus, PathBeneath, PathFd,
    RestrictionStatus, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, RulesetStatus,
    Scope, make_bitflags,
};

/// The newest Landlock version whose restrictions are used; older kernels support some of them.
const NEWEST: ABI = ABI::V7;
/// The oldest usable Landlock version: before it, programs could not move files between folders.
const OLDEST: ABI = ABI::V2;

/// Stack of a run's thread, bytes: that of a process's first thread under Linux.
const STACK: usize = 8 << 20;

/// Devices that every program may open.
const DEVICES: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/full"];
const TERMINAL: &str = "/dev/tty";

/// The kernel's protection of the host, in addition to fxscope's own checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostProtection {
    /// Landlock, and what it permits.
    Landlock {
        /// The version of Landlock's interface.
        abi: i32,
        /// What the simulating thread may still do, as a phrase.
        allowed: String,
    },
    /// None; the reason, and what to do.
    None(String),
}

impl fmt::Display for HostProtection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostProtection::Landlock { abi, allowed } => write!(f, "Landlock ABI {abi}: {allowed}"),
            HostProtection::None(why) => write!(f, "none: {why}"),
        }
    }
}

/// The access that the thread of a run needs.
pub(crate) struct Needs<'a> {
    /// What the program may access.
    pub access: &'a Access,
    /// The folder that is its `/dev/shm`.
    pub shared_folder: Option<&'a Path>,
    /// Files that are read again after the run: the program and its interpreter.
    pub files: &'a [PathBuf],
}

/// Calls `run` on a new thread and waits for it.
///
/// # Errors
/// If the host cannot start a thread.
pub(crate) fn on_its_own_thread<R: Send>(run: impl FnOnce() -> R + Send) -> std::io::Result<R> {
    // The process's thread pool must not be started by the run's thread, since it would inherit the restrictions. An
    // error means that it exists already.
    let _ = rayon::ThreadPoolBuilder::new().build_global();
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("run".to_owned()).stack_size(STACK).spawn_scoped(scope, run)?;
        thread.join().or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Removes all access that `needs` does not name from the calling thread and threads that it starts.
pub(crate) fn restrict(needs: &Needs<'_>) -> HostProtection {
    match rules(needs).and_then(RulesetCreated::restrict_self) {
        Ok(RestrictionStatus { landlock: LandlockStatus::Available { effective_abi, .. }, ruleset, .. })
            if ruleset != RulesetStatus::NotEnforced =>
        {
            let abi = (effective_abi as i32).min(NEWEST as i32);
            HostProtection::Landlock { abi, allowed: allowed(needs.access, abi) }
        }
        Ok(status) => HostProtection::None(why_not(status.landlock)),
        // A kernel that is too old rejects the rules. The version it supports shows when something else is restricted,
        // which the thread does not need either.
        Err(error) => {
            HostProtection::None(no_programs().map_or_else(|_| error.to_string(), |status| why_not(status.landlock)))
        }
    }
}

/// Removes the calling thread's right to start host programs, as far as the kernel supports it.
fn no_programs() -> Result<RestrictionStatus, RulesetError> {
    Ruleset::default().handle_access(AccessFs::Execute)?.create()?.restrict_self()
}

fn rules(needs: &Needs<'_>) -> Result<RulesetCreated, RulesetError> {
    let access = needs.access;
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(OLDEST))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::Signal)?;
    if !access.network {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST))?.scope(Scope::AbstractUnixSocket)?;
    }
    let mut created = ruleset.create()?;
    let mut allow = |path: &Path, rights: BitFlags<AccessFs>| -> Result<(), RulesetError> {
        // A missing file needs no rule: it cannot be created outside the folders that have one.
        let Ok(place) = PathFd::new(path) else { return Ok(()) };
        let rights = if path.is_dir() { rights } else { rights & AccessFs::from_file(NEWEST) };
        (&mut created).add_rule(PathBeneath::new(place, rights)).map(drop)
    };
    let everything = [PathBuf::from("/")];
    for folder in access.read.as_deref().unwrap_or(&everything) {
        allow(folder, reading())?;
    }
    for file in needs.files {
        allow(file, reading())?;
    }
    for folder in access.write.iter().map(PathBuf::as_path).chain(needs.shared_folder) {
        allow(folder, reading() | writing())?;
    }
    for device in DEVICES {
        allow(Path::new(device), reading() | AccessFs::WriteFile)?;
    }
    if access.read.is_none() {
        allow(Path::new(TERMINAL), reading() | AccessFs::WriteFile | AccessFs::IoctlDev)?;
    }
    Ok(created)
}

fn reading() -> BitFlags<AccessFs> {
    make_bitflags!(AccessFs::{ReadFile | ReadDir})
}

/// Returns all rights to files in a folder except creating and controlling devices.
fn writing() -> BitFlags<AccessFs> {
    AccessFs::from_write(NEWEST) & !make_bitflags!(AccessFs::{MakeChar | MakeBlock | IoctlDev})
}

/// Returns why Landlock is not used, and what to do.
fn why_not(status: LandlockStatus) -> String {
    let why = match status {
        LandlockStatus::NotEnabled => {
            return "the kernel has Landlock, but it is switched off; add landlock to the kernel's parameter lsm="
                .to_owned();
        }
        LandlockStatus::NotImplemented => "the kernel has no Landlock".to_owned(),
        LandlockStatus::Available { effective_abi, .. } => {
            format!("the kernel's Landlock (ABI {}) is too old", effective_abi as i32)
        }
    };
    format!("{why}; fxscope's own checks apply. Linux 5.19 and newer have the required version")
}

/// Describes the remaining access of the program, for users.
fn allowed(access: &Access, abi: i32) -> String {
    let list = |folders: &[PathBuf]| match folders {
        [] => "nowhere".to_owned(),
        some => some.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", "),
    };
    let read = access.read.as_ref().map_or("anywhere".to_owned(), |folders| list(folders));
    let network = match (access.network, abi >= ABI::V4 as i32) {
        (true, _) => "network",
        (false, true) => "no TCP",
        (false, false) => "network not covered before ABI 4",
    };
    format!("reads {read}; writes {}; {network}", list(&access.write))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;

    use super::*;

    /// Reports, past the capture of the test's output, why nothing was tested.
    fn skip(why: std::fmt::Arguments<'_>) {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "{why}");
    }

    fn restricted<R: Send>(access: &Access, act: impl FnOnce() -> R + Send) -> Option<R> {
        let needs = Needs { access, shared_folder: None, files: &[] };
        on_its_own_thread(|| match restrict(&needs) {
            HostProtection::Landlock { .. } => Some(act()),
            HostProtection::None(why) => {
                skip(format_args!("skipped: {why}"));
                None
            }
        })
        .expect("a thread")
    }

    #[test]
    fn the_kernel_refuses_what_the_program_may_not_touch_and_the_process_stays_free() {
        let folder = tempfile::tempdir().expect("folder");
        let (inside, outside) = (folder.path().join("inside"), folder.path().join("outside"));
        fs::create_dir(&inside).expect("folder");
        fs::write(&outside, "intact").expect("file");
        let access = Access { read: Some(vec![inside.clone()]), write: vec![inside.clone()], ..Access::sandbox() };
        let act = || {
            let denied = |result: std::io::Result<()>| result.is_err_and(|e| e.kind() == ErrorKind::PermissionDenied);
            fs::write(inside.join("file"), "own").expect("may be written");
            fs::rename(inside.join("file"), inside.join("moved")).expect("may be moved");
            assert!(denied(fs::read(&outside).map(drop)) && denied(fs::write(&outside, "changed")));
            assert!(denied(fs::remove_file(&outside)) && fs::hard_link(&outside, inside.join("link")).is_err());
            assert!(denied(fs::read("/proc/self/environ").map(drop)));
            fs::OpenOptions::new().write(true).open("/dev/null").expect("may be opened");
            let child = std::process::Command::new("/bin/true").spawn();
            assert!(denied(child.map(drop)), "host programs are not started");
            let inherited = std::thread::scope(|s| s.spawn(|| denied(fs::write(&outside, "changed"))).join());
            assert!(inherited.expect("no panic"), "threads that it starts are restricted, too");
            true
        };
        if restricted(&access, act).is_some() {
            assert!(inside.join("moved").exists());
        }
        assert_eq!(fs::read_to_string(&outside).expect("readable again"), "intact");
        fs::write(&outside, "changed").expect("writable again");
    }

    #[test]
    fn the_processs_pool_of_threads_stays_free() {
        let folder = tempfile::tempdir().expect("folder");
        restricted(&Access::sandbox(), || rayon::join(|| (), || ()));
        rayon::scope(|s| s.spawn(|_| fs::write(folder.path().join("file"), "").expect("writable")));
    }

    #[test]
    fn without_network_access_the_kernel_refuses_tcp() {
        let connects = || std::net::TcpListener::bind("127.0.0.1:0").is_ok();
        let standard = Access::standard();
        let abi = on_its_own_thread(|| restrict(&Needs { access: &standard, shared_folder: None, files: &[] }));
        match abi.expect("a thread") {
            HostProtection::Landlock { abi, .. } if abi >= 4 => {
                assert_eq!(restricted(&standard, connects), Some(false));
                assert_eq!(restricted(&Access { network: true, ..standard }, connects), Some(true));
            }
            protection => skip(format_args!("skipped: {protection}")),
        }
        assert!(connects());
    }

    #[test]
    fn a_panic_comes_through() {
        let caught = std::panic::catch_unwind(|| on_its_own_thread(|| -> u32 { panic!("expected by this test") }));
        assert!(caught.is_err());
    }

    #[test]
    fn the_barrier_says_what_it_leaves() {
        let access = Access { write: vec!["/tmp".into(), "/data".into()], ..Access::standard() };
        assert_eq!(allowed(&access, 7), "reads anywhere; writes /tmp, /data; no TCP");
        let sandbox = Access { network: true, ..Access::sandbox() };
        assert_eq!(allowed(&sandbox, 7), "reads nowhere; writes nowhere; network");
    }
}
