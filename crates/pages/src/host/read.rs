//! Reading what the kernel tells.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::{Files, Host, Process, ProcessTexts};

/// Why a process cannot be looked at.
#[derive(Debug, Error)]
pub enum Error {
    /// No such process.
    #[error("there is no process {0} on this host (it may have ended); ps -e shows those there are")]
    None(u32),
    /// It ended meanwhile.
    #[error("process {0} ended while it was looked at; start it again, and look while it runs")]
    Ended(u32),
    /// It is a zombie.
    #[error("process {0} has ended and has no memory any more; its parent has not asked for its status")]
    Zombie(u32),
    /// It has no memory of its own.
    #[error("process {0} is part of the kernel and has no mappings; give the number of a program")]
    Kernel(u32),
    /// It belongs to others.
    #[error(
        "{path}: {error}; mappings are shown to the process's own user and to root: run this as one of them, or with sudo"
    )]
    Refused {
        /// The file.
        path: PathBuf,
        /// What the kernel says.
        error: io::Error,
    },
    /// Anything else.
    #[error("{path}: cannot be read ({error}); is /proc mounted here?")]
    Other {
        /// The file.
        path: PathBuf,
        /// What the kernel says.
        error: io::Error,
    },
}

/// What this host offers.
#[must_use]
pub fn host() -> Host {
    Host::parse(Some(rustix::param::page_size() as u64), &files(Path::new("/")))
}

/// The files that say what a host offers, below `root`. What cannot be read is not among them.
#[must_use]
pub fn files(root: &Path) -> Files {
    let mut files = Files::new();
    let mut take = |folder: &str, wanted: &dyn Fn(&str) -> bool| {
        for name in names(&root.join(folder)).into_iter().filter(|name| wanted(name)) {
            let path = format!("{folder}/{name}");
            if let Ok(bytes) = fs::read(root.join(&path)) {
                files.insert(path, String::from_utf8_lossy(&bytes).trim_end().to_owned());
            }
        }
    };
    let counts = |name: &str| name.ends_with("_hugepages");
    let any = |_: &str| true;
    for size in names(&root.join("sys/kernel/mm/hugepages")) {
        take(&format!("sys/kernel/mm/hugepages/{size}"), &counts);
    }
    let thp = "sys/kernel/mm/transparent_hugepage";
    take(thp, &any);
    names(&root.join(thp)).iter().for_each(|name| take(&format!("{thp}/{name}"), &any));
    let nodes = "sys/devices/system/node";
    for node in names(&root.join(nodes)).into_iter().filter(|name| name.starts_with("node")) {
        take(&format!("{nodes}/{node}"), &|name| name == "meminfo");
        for size in names(&root.join(format!("{nodes}/{node}/hugepages"))) {
            take(&format!("{nodes}/{node}/hugepages/{size}"), &counts);
        }
    }
    files
}

/// Names in a folder, in order; none if it cannot be read.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// A process of this host.
///
/// # Errors
/// When there is none, it may not be looked at, or it ends meanwhile.
pub fn process(pid: u32) -> Result<Process, Error> {
    Ok(Process::parse(pid, &texts(Path::new("/proc"), pid)?))
}

/// The texts of a process below `proc`.
///
/// # Errors
/// As [`process`].
pub fn texts(proc: &Path, pid: u32) -> Result<ProcessTexts, Error> {
    let folder = proc.join(pid.to_string());
    if !folder.is_dir() {
        return Err(Error::None(pid));
    }
    let read = |name: &str| read(&folder.join(name), pid);
    let before = read("stat")?;
    let status = read("status")?;
    let smaps = read("smaps")?;
    if smaps.trim().is_empty() {
        return Err(without_memory(pid, &read("status")?));
    }
    let numa_maps = read("numa_maps").ok();
    let exe = fs::read_link(folder.join("exe")).ok().map(|path| path.to_string_lossy().into_owned());
    // The number may be another process's by now.
    if !read("stat").is_ok_and(|after| started(&after) == started(&before)) {
        return Err(Error::Ended(pid));
    }
    Ok(ProcessTexts { smaps, numa_maps, status, exe })
}

fn read(path: &Path, pid: u32) -> Result<String, Error> {
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::NotFound => Error::Ended(pid),
        ErrorKind::PermissionDenied => Error::Refused { path: path.to_owned(), error },
        _ if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Error::Ended(pid),
        _ => Error::Other { path: path.to_owned(), error },
    };
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(failed)
}

/// When a process started, as `stat` has it: the 20th word behind the name, which is in parentheses and may hold any.
fn started(stat: &str) -> Option<&str> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)
}

/// Why a process has no mappings, by its `status`.
fn without_memory(pid: u32, status: &str) -> Error {
    let has = |key: &str, value: &str| {
        status.lines().any(|line| line.strip_prefix(key).is_some_and(|rest| rest.trim().starts_with(value)))
    };
    if has("State:", "Z") || has("State:", "X") {
        Error::Zombie(pid)
    } else if has("Kthread:", "1") || !status.contains("VmSize:") {
        Error::Kernel(pid)
    } else {
        Error::Ended(pid)
    }
}
