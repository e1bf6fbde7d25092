//! The simulated files: `/proc`, `/sys` and `/dev` of the modelled machine. Host files below these folders are invisible, except
//! for a few devices.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Bound;

use rustix::fs::FileType;
use serde::{Deserialize, Serialize};

use super::{commands, libraries, netfs, procfs, sysfs, sysvfs};
use crate::fs::files::Files;
use crate::hwpfctl;
use crate::ipc::barrier;
use crate::kernel::Kernel;
use crate::platform::Platform;
use crate::processes::Zombie;
use crate::thread::Thread;

/// Folders in which only simulated files are visible.
const AREAS: [&[u8]; 3] = [b"/proc", b"/sys", b"/dev"];

/// Names in `/dev` that refer to the host's devices.
const DEVICES: [&[u8]; 5] = [b"full", b"null", b"shm", b"tty", b"zero"];

/// The folder in the table for `/proc/PID` and `/proc/PID/task/TID`.
const OWN: &[u8] = b"/proc/@";

/// The same for a process that has ended.
const ENDED: &[u8] = b"/proc/#";

/// A simulated file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Node {
    /// Its absolute path.
    pub path: Vec<u8>,
    pub kind: Kind,
}

impl Node {
    /// Returns a unique inode number.
    pub(crate) fn inode(&self) -> u64 {
        inode(&self.path)
    }

    pub(crate) fn file_type(&self) -> FileType {
        match self.kind {
            Kind::Directory => FileType::Directory,
            Kind::File | Kind::Memory | Kind::PageMap | Kind::Command | Kind::Substitute => FileType::RegularFile,
            Kind::Link | Kind::Descriptor(_) | Kind::DescriptorOf(..) => FileType::Symlink,
            Kind::Random | Kind::HardwareBarrier | Kind::Ptmx | Kind::Terminal(_) => FileType::CharacterDevice,
        }
    }
}

/// The type of a simulated file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    Directory,
    /// A text that is generated when the file is opened.
    File,
    /// The memory of a process.
    Memory,
    /// The pages of a process.
    PageMap,
    Link,
    /// Random bytes from the run's seed.
    Random,
    /// The device of the hardware barrier's driver.
    HardwareBarrier,
    /// The device that makes pseudoterminals.
    Ptmx,
    /// The terminal of the pseudoterminal with this number.
    Terminal(u32),
    /// The open file of this number of the process, as a link.
    Descriptor(i32),
    /// The same of another process.
    DescriptorOf(u32, i32),
    /// A command that the simulator implements.
    Command,
    /// A substitute for a library or a command, with its contents.
    Substitute,
}

/// Generates a file's contents from the state of the process.
pub(super) type Make = fn(&Kernel<'_>, &Thread) -> Vec<u8>;

/// Generates a file's contents from the state of a process that has ended.
pub(super) type MakeOfZombie = fn(&Kernel<'_>, &Zombie) -> Vec<u8>;

/// Generates a file's contents from the state of a memory node.
pub(super) type MakeOfNode = fn(&Kernel<'_>, u32) -> Vec<u8>;

/// The source of a file's contents.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    /// A constant text.
    Text(Vec<u8>),
    /// Generated from the state of the process.
    Made(Make),
    /// Generated from the state of a process that has ended.
    OfZombie(MakeOfZombie),
    /// The memory of a process, and its pages.
    Memory,
    PageMap,
    /// Generated from the state of the memory node of this number, or for pages with this log2 of their size.
    OfNode(MakeOfNode, u32),
    /// Generated from the state of a barrier blade: memory node, number.
    OfBlade(u32, u32),
    /// A symbolic link.
    Link(Make),
    /// Random bytes.
    Random,
    /// The device of the hardware barrier's driver.
    HardwareBarrier,
    /// The device that makes pseudoterminals.
    Ptmx,
    /// A folder whose contents are not in the table.
    Directory,
}

/// All simulated files by path. Folders follow from the paths of the files in them. The table is made when a program first looks for one.
#[derive(Default)]
pub(crate) struct Tree(OnceCell<Entries>);

type Entries = BTreeMap<Vec<u8>, Entry>;

impl Tree {
    fn entries(&self, k: &Kernel<'_>) -> &Entries {
        self.0.get_or_init(|| Tree::made(&k.system.platform))
    }

    fn made(platform: &Platform) -> Entries {
        let mut entries = BTreeMap::new();
        procfs::entries(platform, &mut entries);
        sysfs::entries(platform, &mut entries);
        netfs::entries(&mut entries);
        sysvfs::entries(&mut entries);
        for name in ["random", "urandom"] {
            entries.insert(format!("/dev/{name}").into_bytes(), Entry::Random);
        }
        if let Some(barrier) = &platform.barrier {
            sysfs::hardware_barrier(platform, barrier, &mut entries);
            entries.insert(barrier::DEVICE.as_bytes().to_vec(), Entry::HardwareBarrier);
        }
        for path in [&b"/dev/ptmx"[..], b"/dev/pts/ptmx"] {
            entries.insert(path.to_vec(), Entry::Ptmx);
        }
        entries.insert(b"/dev/fd".to_vec(), Entry::Link(|_, _| b"/proc/self/fd".to_vec()));
        entries.insert(b"/dev/stdin".to_vec(), Entry::Link(|_, _| b"/proc/self/fd/0".to_vec()));
        entries.insert(b"/dev/stdout".to_vec(), Entry::Link(|_, _| b"/proc/self/fd/1".to_vec()));
        entries.insert(b"/dev/stderr".to_vec(), Entry::Link(|_, _| b"/proc/self/fd/2".to_vec()));
        entries
    }

    /// Returns the simulated file at an absolute path without `.`, `..` and links.
    pub(crate) fn node(&self, k: &Kernel<'_>, path: &[u8]) -> Option<Node> {
        if !is_simulated(path) {
            return None;
        }
        let (key, t) = locate(k, path);
        let kind = match self.entries(k).get(&key) {
            Some(Entry::Text(_) | Entry::Made(_) | Entry::OfZombie(_) | Entry::OfNode(..) | Entry::OfBlade(..)) => {
                Kind::File
            }
            Some(Entry::Memory) => Kind::Memory,
            Some(Entry::PageMap) => Kind::PageMap,
            Some(Entry::Link(_)) => Kind::Link,
            Some(Entry::Random) => Kind::Random,
            Some(Entry::Ptmx) => Kind::Ptmx,
            Some(Entry::HardwareBarrier) => Kind::HardwareBarrier,
            Some(Entry::Directory) => Kind::Directory,
            None if self.below(k, &key).next().is_some() => Kind::Directory,
            None if key.starts_with(b"/dev/pts/") => Kind::Terminal(terminal(k, &key)?),
            None if open_descriptor(k, t, &key, b"/fdinfo/").is_some() => Kind::File,
            None => match open_descriptor(k, t, &key, b"/fd/")? {
                fd if t.pid == k.process.pid => Kind::Descriptor(fd),
                fd => Kind::DescriptorOf(t.pid, fd),
            },
        };
        Some(Node { path: path.to_vec(), kind })
    }

    /// Returns the simulated file that replaces the host's for a program without access to the network.
    pub(crate) fn replacement(path: &[u8]) -> Option<Node> {
        (path == netfs::HOSTS.as_bytes()).then(|| Node { path: path.to_vec(), kind: Kind::File })
    }

    /// Returns the simulated command or library for a path at which neither the host nor the sysroot has a file.
    pub(crate) fn stand_in(path: &[u8]) -> Option<Node> {
        let node = |kind| Some(Node { path: path.to_vec(), kind });
        if path == hwpfctl::PATH.as_bytes() {
            node(Kind::Command)
        } else if libraries::stands_in_for(path) || commands::stands_in_for(path) {
            node(Kind::Substitute)
        } else {
            None
        }
    }

    /// Returns the target of a link.
    pub(crate) fn link(&self, k: &Kernel<'_>, node: &Node) -> Vec<u8> {
        let (key, t) = locate(k, &node.path);
        match (node.kind, self.entries(k).get(&key)) {
            (Kind::Descriptor(fd), _) => k.process.files.link_text(fd),
            (_, Some(Entry::Link(text))) => text(k, t),
            _ => match (open_descriptor(k, t, &key, b"/fd/"), files_of(k, t)) {
                (Some(fd), Some(files)) => files.link_text(fd),
                _ => Vec::new(),
            },
        }
    }

    /// Returns the current contents of a file.
    pub(crate) fn content(&self, k: &Kernel<'_>, node: &Node) -> Vec<u8> {
        if node.kind == Kind::Substitute {
            let is_command = commands::stands_in_for(&node.path);
            return if is_command { commands::CONTENT } else { libraries::CONTENT }.to_vec();
        }
        let (key, t) = locate(k, &node.path);
        match self.entries(k).get(&key) {
            Some(Entry::Text(text)) => text.clone(),
            Some(Entry::Made(make)) => make(k, t),
            Some(Entry::OfNode(make, node)) => make(k, *node),
            Some(&Entry::OfBlade(node, number)) => barrier::sysfs::blade(k, node, number),
            Some(Entry::OfZombie(make)) => {
                let pid = process_in(&node.path);
                let zombie = k.system.zombies.iter().find(|zombie| Some(zombie.pid) == pid);
                zombie.map(|zombie| make(k, zombie)).unwrap_or_default()
            }
            _ => match open_descriptor(k, t, &key, b"/fdinfo/") {
                Some(fd) => procfs::descriptor(k, t, fd),
                None => Vec::new(),
            },
        }
    }

    /// Lists a folder: name, type and inode number, in the order of the names.
    pub(crate) fn list(&self, k: &Kernel<'_>, node: &Node) -> Vec<(Vec<u8>, FileType, u64)> {
        let (key, t) = locate(k, &node.path);
        let names = self.below(k, &key).filter_map(|path| path[key.len() + 1..].split(|&b| b == b'/').next());
        let mut names: Vec<Vec<u8>> = names.filter(|name| *name != b"@" && *name != b"#").map(<[u8]>::to_vec).collect();
        let mut add = |number: u32| names.push(number.to_string().into_bytes());
        match &key[..] {
            b"/proc" => {
                k.all_processes().filter(|process| !process.ended).for_each(|process| add(process.pid));
                k.system.zombies.iter().for_each(|zombie| add(zombie.pid));
            }
            b"/proc/@/task" => {
                k.all_threads()
                    .filter(|thread| thread.pid == t.pid && !thread.ended)
                    .for_each(|thread| add(thread.tid));
            }
            b"/proc/@/fd" | b"/proc/@/fdinfo" => {
                let Some(files) = files_of(k, t) else { return Vec::new() };
                (0..files.end()).filter(|&fd| files.host(fd).is_ok()).for_each(|fd| add(fd as u32));
            }
            b"/dev/pts" => k.system.ptys.numbers().for_each(add),
            b"/dev" => names.extend(DEVICES.map(<[u8]>::to_vec)),
            _ => {}
        }
        names.sort();
        names.dedup();
        let entry = |name: Vec<u8>| {
            let path = [&node.path, &b"/"[..], &name].concat();
            let kind = self.node(k, &path).map_or(FileType::Unknown, |node| node.file_type());
            (name, kind, inode(&path))
        };
        names.into_iter().map(entry).collect()
    }

    /// Iterates over the table's paths below a folder.
    fn below<'a>(&'a self, k: &Kernel<'_>, folder: &[u8]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let prefix = [folder, b"/"].concat();
        let range = self.entries(k).range::<[u8], _>((Bound::Included(&prefix[..]), Bound::Unbounded));
        range.map(|(path, _)| &path[..]).take_while(move |path| path.starts_with(&prefix))
    }
}

/// Returns an inode number for a path (FNV-1a).
fn inode(path: &[u8]) -> u64 {
    path.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, &b| (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns whether a path belongs to the simulated files, whether or not one exists there.
pub(crate) fn is_simulated(path: &[u8]) -> bool {
    AREAS.iter().any(|area| super::access::is_within(path, area)) && !is_device(path)
}

/// Returns whether a path belongs to the host's devices that programs see.
pub(crate) fn is_device(path: &[u8]) -> bool {
    let Some(name) = path.strip_prefix(b"/dev/") else { return false };
    DEVICES.iter().any(|device| super::access::is_within(name, device))
}

/// Returns the table's path for a path, and the thread that it refers to: the table has a single folder for all processes and their
/// threads.
fn locate<'a>(k: &'a Kernel<'_>, path: &[u8]) -> (Vec<u8>, &'a Thread) {
    let own = &*k.thread;
    let Some((id, rest)) = path.strip_prefix(b"/proc/").and_then(number) else { return (path.to_vec(), own) };
    // Linux also finds threads by their numbers, although it does not list them.
    let Some(t) = thread(k, id) else {
        let ended = k.system.zombies.iter().any(|zombie| zombie.pid == id);
        return (if ended { [ENDED, rest].concat() } else { path.to_vec() }, own);
    };
    let task = rest.strip_prefix(b"/task/").and_then(number);
    match task.and_then(|(tid, rest)| Some((thread(k, tid).filter(|task| task.pid == t.pid)?, rest))) {
        Some((thread, rest)) => ([OWN, rest].concat(), thread),
        None => ([OWN, rest].concat(), t),
    }
}

/// Returns the thread with this number or, if the first thread of a process has ended before others, one of those.
pub(crate) fn thread<'a>(k: &'a Kernel<'_>, id: u32) -> Option<&'a Thread> {
    let all = || k.all_threads().filter(|thread| !thread.ended);
    all()
        .find(|thread| thread.tid == id)
        .or_else(|| all().filter(|thread| thread.pid == id).min_by_key(|thread| thread.tid))
}

/// Returns the number of the process or thread in the name of a file below `/proc`.
pub(crate) fn process_in(path: &[u8]) -> Option<u32> {
    path.strip_prefix(b"/proc/").and_then(number).map(|(id, _)| id)
}

/// Returns the number at the start of a path, and the rest: nothing, or a slash and more.
fn number(path: &[u8]) -> Option<(u32, &[u8])> {
    let end = path.iter().position(|&b| b == b'/').unwrap_or(path.len());
    let digits = std::str::from_utf8(&path[..end]).ok()?;
    // Linux writes each number in one way only.
    let value: u32 = digits.parse().ok().filter(|value: &u32| value.to_string() == digits)?;
    Some((value, &path[end..]))
}

/// Returns the open file of a thread's process that a path in `/proc/PID/fd` or, in general, `folder` names.
fn open_descriptor(k: &Kernel<'_>, t: &Thread, key: &[u8], folder: &[u8]) -> Option<i32> {
    let (fd, rest) = number(key.strip_prefix(OWN)?.strip_prefix(folder)?)?;
    let fd = i32::try_from(fd).ok().filter(|_| rest.is_empty())?;
    files_of(k, t)?.host(fd).ok().map(|_| fd)
}

/// Returns the number of the terminal that a path in `/dev/pts` names, if it exists.
fn terminal(k: &Kernel<'_>, path: &[u8]) -> Option<u32> {
    let (terminal, rest) = number(path.strip_prefix(b"/dev/pts/")?)?;
    k.system.ptys.get(terminal).filter(|_| rest.is_empty()).map(|_| terminal)
}

/// Returns the open files of a thread's process.
fn files_of<'a>(k: &'a Kernel<'_>, t: &Thread) -> Option<&'a Files> {
    k.all_processes().find(|process| process.pid == t.pid).map(|process| &process.files)
}
