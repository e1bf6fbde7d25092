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
    let exe = || fs::read_link(folder.join("exe")).ok().map(|path| path.to_string_lossy().into_owned());
    texts_of(pid, exe, |name| {
        let path = folder.join(name);
        let bytes = fs::read(&path).map_err(|error| failed(path, error, pid))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    })
}

/// The texts of a process that `read` reads by their names, one after the other: in between it may end.
fn texts_of(
    pid: u32,
    exe: impl FnOnce() -> Option<String>,
    mut read: impl FnMut(&str) -> Result<String, Error>,
) -> Result<ProcessTexts, Error> {
    let before = read("stat")?;
    let status = read("status")?;
    let smaps = read("smaps")?;
    if smaps.trim().is_empty() {
        return Err(without_memory(pid, &read("status")?));
    }
    let numa_maps = read("numa_maps").ok();
    let exe = exe();
    // The number may be another process's by now.
    let after = read("stat")?;
    if started(&after) != started(&before) {
        return Err(Error::Ended(pid));
    }
    // Of a process that ends, the kernel says no more from the next mapping on, and that is no error to it.
    if addresses(&after) == Some("0") {
        return Err(ended(pid, &read("status")?));
    }
    if is_cut(&smaps) {
        return Err(Error::Ended(pid));
    }
    Ok(ProcessTexts { smaps, numa_maps, status, exe })
}

/// Why a process's file cannot be read.
fn failed(path: PathBuf, error: io::Error, pid: u32) -> Error {
    match error.kind() {
        ErrorKind::NotFound => Error::Ended(pid),
        ErrorKind::PermissionDenied => Error::Refused { path, error },
        _ if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Error::Ended(pid),
        _ => Error::Other { path, error },
    }
}

/// When a process started, as `stat` has it: the 20th word behind the name, which is in parentheses and may hold any.
fn started(stat: &str) -> Option<&str> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)
}

/// Bytes of addresses that a process has, as `stat` has them behind its start: 0 once its memory is gone.
fn addresses(stat: &str) -> Option<&str> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(20)
}

/// Whether a text of `smaps` ends within a line, or its last mapping before the field that is the first mapping's last.
fn is_cut(smaps: &str) -> bool {
    let is_field = |line: &&str| line.starts_with(|c: char| c.is_ascii_uppercase());
    let key = |line: &str| line.split(':').next().map(str::to_owned);
    let last_of_first = smaps.lines().skip(1).take_while(is_field).last();
    !smaps.ends_with('\n') || smaps.lines().last().and_then(key) != last_of_first.and_then(key)
}

/// Why a process has no mappings, by its `status`.
fn without_memory(pid: u32, status: &str) -> Error {
    // Kernels before 6.9 do not say what is a thread of theirs; what ends has no VmSize, either.
    let thread = match value(status, "Kthread") {
        Some(answer) => answer == "1",
        None => value(status, "VmSize").is_none(),
    };
    match ended(pid, status) {
        Error::Ended(_) if thread => Error::Kernel(pid),
        error => error,
    }
}

/// How a process that had mappings ended, by its `status`.
fn ended(pid: u32, status: &str) -> Error {
    let state = value(status, "State").unwrap_or_default();
    if state.starts_with(['Z', 'X']) { Error::Zombie(pid) } else { Error::Ended(pid) }
}

/// What a `status` says of `key`.
fn value<'s>(status: &'s str, key: &str) -> Option<&'s str> {
    status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "7 (a) b) R 1 7 7 0 -1 4194304 9 0 0 0 1 1 0 0 20 0 1 0 4242 12288 3 0";
    /// The same when its memory is gone.
    const LEAVING: &str = "7 (a) b) R 1 7 7 0 -1 4194308 9 0 0 0 1 1 0 0 20 0 1 0 4242 0 0 0";
    const SMAPS: &str = "00400000-00401000 r-xp 00000000 00:00 1 /bin/a\nRss: 4 kB\nVmFlags: rd ex\n\
                         00500000-00502000 rw-p 00000000 00:00 0 [heap]\nRss: 8 kB\nVmFlags: rd wr\n";

    /// What is said of process 7 with these texts of `smaps`, of `stat` behind it, and of `status`.
    fn said(smaps: Result<&str, i32>, after: Result<&str, i32>, status: &str) -> Result<ProcessTexts, String> {
        let mut stats = 0;
        let read = |name: &str| {
            let text = match name {
                "smaps" => smaps,
                "stat" => {
                    stats += 1;
                    if stats == 1 { Ok(STAT) } else { after }
                }
                "status" => Ok(status),
                _ => Err(2),
            };
            text.map(str::to_owned).map_err(|code| failed(name.into(), io::Error::from_raw_os_error(code), 7))
        };
        texts_of(7, || None, read).map_err(|error| error.to_string())
    }

    const RUNNING: &str = "State:\tR (running)\nVmSize:\t12 kB\n";

    #[test]
    fn a_process_that_ends_while_its_mappings_are_read_is_told_and_nothing_of_it_is_shown() {
        let srch = rustix::io::Errno::SRCH.raw_os_error();
        let noent = rustix::io::Errno::NOENT.raw_os_error();
        let ended = "process 7 ended while it was looked at";
        let whole = said(Ok(SMAPS), Ok(STAT), RUNNING).expect("it runs on");
        assert_eq!(whole.smaps, SMAPS);
        // Which fields a kernel writes is known once there is a mapping with all of them.
        let lines = |&at: &usize| !["00500000", "VmFlags: rd ex"].iter().any(|line| SMAPS[at..].starts_with(line));
        for cut in (1..SMAPS.len()).filter(lines) {
            let message = said(Ok(&SMAPS[..cut]), Ok(STAT), RUNNING).expect_err("cut");
            assert!(message.contains(ended), "{cut}: {message}");
        }
        // Between mappings, only that it has no memory any more tells.
        let first = &SMAPS[..SMAPS.find("00500000").expect("there")];
        for (smaps, after) in [(Err(srch), Ok(STAT)), (Ok(first), Err(noent)), (Ok(first), Err(srch))] {
            assert!(said(smaps, after, RUNNING).expect_err("ended").contains(ended));
        }
        let leaving = said(Ok(first), Ok(LEAVING), "State:\tR (running)\nKthread:\t0\n").expect_err("ended");
        assert!(leaving.contains(ended), "{leaving}");
        let leaving = said(Ok(""), Ok(LEAVING), "State:\tR (running)\nKthread:\t0\n").expect_err("ended");
        assert!(leaving.contains(ended), "{leaving}");
        let zombie = said(Ok(first), Ok(LEAVING), "State:\tZ (zombie)\n").expect_err("ended");
        assert!(zombie.contains("process 7 has ended and has no memory any more"), "{zombie}");
    }

    #[test]
    fn a_number_that_another_process_has_by_now_is_not_taken_for_the_first() {
        let other = STAT.replace("4242", "4243");
        let message = said(Ok(SMAPS), Ok(&other), RUNNING).expect_err("another");
        assert!(message.contains("process 7 ended while it was looked at"), "{message}");
    }
}
