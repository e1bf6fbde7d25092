//! Reads the kernel's files.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::{Files, Host, Process, ProcessTexts};

/// Why a process cannot be examined.
#[derive(Debug, Error)]
pub enum Error {
    /// There is no such process.
    #[error("there is no process {0} on this host (it may have ended); ps -e lists the processes")]
    None(u32),
    /// The process ended meanwhile.
    #[error("process {0} ended while it was being read; start it again and retry while it runs")]
    Ended(u32),
    /// The process is a zombie.
    #[error("process {0} has ended and no longer has memory; its parent has not collected its status")]
    Zombie(u32),
    /// A kernel thread, which has no memory of its own.
    #[error("process {0} is a kernel thread and has no mappings; give the ID of a user process")]
    Kernel(u32),
    /// The process belongs to another user.
    #[error(
        "{path}: {error}; only the process's owner and root may read its mappings: run this as one of them, or with sudo"
    )]
    Refused {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        error: io::Error,
    },
    /// Any other error.
    #[error("{path}: cannot be read ({error}); is /proc mounted here?")]
    Other {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        error: io::Error,
    },
}

/// Reads the memory configuration of this host.
#[must_use]
pub fn host() -> Host {
    Host::parse(Some(rustix::param::page_size() as u64), &files(Path::new("/")))
}

/// Reads the files below `root` that describe a host's memory. Unreadable files are absent.
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

/// Names in a directory, sorted; empty if it cannot be read.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// Examines a process of this host.
///
/// # Errors
/// When the process does not exist, may not be examined, or ends meanwhile.
pub fn process(pid: u32) -> Result<Process, Error> {
    Ok(Process::parse(pid, &texts(Path::new("/proc"), pid)?))
}

/// Reads the texts of a process below `proc`.
///
/// # Errors
/// As for [`process`].
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

/// Reads a process's texts one after the other with `read`; the process may end in between.
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
    // The process ID may have been reused.
    let after = read("stat")?;
    if started(&after) != started(&before) {
        return Err(Error::Ended(pid));
    }
    // The kernel truncates the files of a process that ends, without an error.
    if addresses(&after) == Some("0") {
        return Err(ended(pid, &read("status")?));
    }
    if is_cut(&smaps) {
        return Err(Error::Ended(pid));
    }
    Ok(ProcessTexts { smaps, numa_maps, status, exe })
}

/// Returns why a file of a process cannot be read.
fn failed(path: PathBuf, error: io::Error, pid: u32) -> Error {
    match error.kind() {
        ErrorKind::NotFound => Error::Ended(pid),
        ErrorKind::PermissionDenied => Error::Refused { path, error },
        _ if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Error::Ended(pid),
        _ => Error::Other { path, error },
    }
}

/// Returns the start time of a process in `stat`: word 20 after the name, which is in parentheses and may contain anything.
fn started(stat: &str) -> Option<&str> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)
}

/// Returns the virtual memory size of a process in `stat`, after the start time: 0 once its memory is gone.
fn addresses(stat: &str) -> Option<&str> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(20)
}

/// Returns whether `smaps` is truncated: it ends within a line, or its last mapping lacks the last field of its first.
fn is_cut(smaps: &str) -> bool {
    let is_field = |line: &&str| line.starts_with(|c: char| c.is_ascii_uppercase());
    let key = |line: &str| line.split(':').next().map(str::to_owned);
    let last_of_first = smaps.lines().skip(1).take_while(is_field).last();
    !smaps.ends_with('\n') || smaps.lines().last().and_then(key) != last_of_first.and_then(key)
}

/// Returns why a process has no mappings, from its `status`.
fn without_memory(pid: u32, status: &str) -> Error {
    // Kernels before 6.9 do not mark their threads; ending processes have no VmSize, either.
    let thread = match value(status, "Kthread") {
        Some(answer) => answer == "1",
        None => value(status, "VmSize").is_none(),
    };
    match ended(pid, status) {
        Error::Ended(_) if thread => Error::Kernel(pid),
        error => error,
    }
}

/// Returns how a process that had mappings ended, from its `status`.
fn ended(pid: u32, status: &str) -> Error {
    let state = value(status, "State").unwrap_or_default();
    if state.starts_with(['Z', 'X']) { Error::Zombie(pid) } else { Error::Ended(pid) }
}

/// Returns the value of `key` in `status`.
fn value<'s>(status: &'s str, key: &str) -> Option<&'s str> {
    status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "7 (a) b) R 1 7 7 0 -1 4194304 9 0 0 0 1 1 0 0 20 0 1 0 4242 12288 3 0";
    /// `stat` of the same process when its memory is gone.
    const LEAVING: &str = "7 (a) b) R 1 7 7 0 -1 4194308 9 0 0 0 1 1 0 0 20 0 1 0 4242 0 0 0";
    const SMAPS: &str = "00400000-00401000 r-xp 00000000 00:00 1 /bin/a\nRss: 4 kB\nVmFlags: rd ex\n\
                         00500000-00502000 rw-p 00000000 00:00 0 [heap]\nRss: 8 kB\nVmFlags: rd wr\n";

    /// Returns the result for process 7 with these texts of `smaps`, of `stat` read after it, and of `status`.
    fn result_of(smaps: Result<&str, i32>, after: Result<&str, i32>, status: &str) -> Result<ProcessTexts, String> {
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
    fn a_process_that_ends_during_reading_is_reported_without_partial_data() {
        let srch = rustix::io::Errno::SRCH.raw_os_error();
        let noent = rustix::io::Errno::NOENT.raw_os_error();
        let ended = "process 7 ended while it was being read";
        let whole = result_of(Ok(SMAPS), Ok(STAT), RUNNING).expect("it runs on");
        assert_eq!(whole.smaps, SMAPS);
        // A kernel's fields are known once there is a complete mapping.
        let lines = |&at: &usize| !["00500000", "VmFlags: rd ex"].iter().any(|line| SMAPS[at..].starts_with(line));
        for cut in (1..SMAPS.len()).filter(lines) {
            let message = result_of(Ok(&SMAPS[..cut]), Ok(STAT), RUNNING).expect_err("cut");
            assert!(message.contains(ended), "{cut}: {message}");
        }
        // Between mappings, truncation is recognised only by the missing memory.
        let first = &SMAPS[..SMAPS.find("00500000").expect("there")];
        for (smaps, after) in [(Err(srch), Ok(STAT)), (Ok(first), Err(noent)), (Ok(first), Err(srch))] {
            assert!(result_of(smaps, after, RUNNING).expect_err("ended").contains(ended));
        }
        let leaving = result_of(Ok(first), Ok(LEAVING), "State:\tR (running)\nKthread:\t0\n").expect_err("ended");
        assert!(leaving.contains(ended), "{leaving}");
        let leaving = result_of(Ok(""), Ok(LEAVING), "State:\tR (running)\nKthread:\t0\n").expect_err("ended");
        assert!(leaving.contains(ended), "{leaving}");
        let zombie = result_of(Ok(first), Ok(LEAVING), "State:\tZ (zombie)\n").expect_err("ended");
        assert!(zombie.contains("process 7 has ended and no longer has memory"), "{zombie}");
    }

    #[test]
    fn a_reused_process_id_is_detected() {
        let other = STAT.replace("4242", "4243");
        let message = result_of(Ok(SMAPS), Ok(&other), RUNNING).expect_err("another");
        assert!(message.contains("process 7 ended while it was being read"), "{message}");
    }
}
