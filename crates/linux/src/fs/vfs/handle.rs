//! Opens host files in two steps: first a handle, which has no effect on the file, then the file behind the handle.
//!
//! The checks apply to what the handle refers to, so the file cannot be exchanged in between. Device nodes and files of kernel
//! file systems are never opened, whatever their folder: opening some of them acts on the host, and `/proc/self/mem` of another
//! procfs mount is the simulator's memory.

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, StatFs};
use rustix::io::Errno;

use super::access::{Denied, Policy};
use super::resolve::path_of;

/// File systems that expose the state of the kernel, its processes and its devices, by `f_type` of `statfs` (Linux
/// `include/uapi/linux/magic.h` and the file systems' own sources).
const KERNEL_FILE_SYSTEMS: [u32; 31] = [
    0x0000_1cd1, // devpts
    0x0000_9fa0, // proc
    0x0000_9fa1, // openpromfs
    0x0000_9fa2, // usbfs
    0x0027_e0eb, // cgroup
    0x0765_5821, // resctrl
    0x0904_1934, // anon_inode
    0x1131_0854, // mtd_inode
    0x1980_0202, // mqueue
    0x42494e4d,  // binfmt_misc
    0x43415d53,  // smackfs
    0x454d444d,  // devmem
    0x50494446,  // pidfs
    0x5a3c_69f0, // apparmorfs
    0x6165_676c, // pstore
    0x6264_6576, // bdev
    0x6265_6570, // configfs
    0x6265_6572, // sysfs
    0x6367_7270, // cgroup2
    0x6462_6720, // debugfs
    0x6473_6378, // daxfs
    0x6573_5543, // fusectl
    0x6759_6969, // rpc_pipefs
    0x6c6f_6f70, // binderfs
    0x6e66_7364, // nfsd
    0x6e73_6673, // nsfs
    0x7363_6673, // securityfs
    0x7472_6163, // tracefs
    0xcafe_4a11, // bpf
    0xde5e_81e4, // efivarfs
    0xf97c_ff8c, // selinuxfs
];

/// Device numbers of `/dev/null`, `/dev/zero`, `/dev/full` and `/dev/tty` (Linux `Documentation/admin-guide/devices.txt`).
const HARMLESS: [(u32, u32); 4] = [(1, 3), (1, 5), (1, 7), (5, 0)];

/// Returns whether a file is a device node.
pub(crate) fn is_device(kind: FileType) -> bool {
    matches!(kind, FileType::CharacterDevice | FileType::BlockDevice)
}

/// A host file that the program may see.
pub(crate) struct Handle {
    file: OwnedFd,
    /// Its path, for refusals.
    path: Vec<u8>,
    stat: Stat,
}

impl Handle {
    /// Opens a handle for the file at `path`. No component may be a symbolic link except the last one, which is not followed.
    ///
    /// # Errors
    /// The host's; `EACCES` for a file of a kernel file system.
    pub(crate) fn new(policy: &Policy, path: &[u8]) -> Result<Handle, Errno> {
        Handle::checked(policy, open_path(path)?, path.to_vec())
    }

    /// Opens a handle for an open file, which is at `path`.
    ///
    /// # Errors
    /// Those of [`Handle::new`].
    pub(crate) fn of(policy: &Policy, file: BorrowedFd<'_>, path: Vec<u8>) -> Result<Handle, Errno> {
        Handle::checked(policy, rustix::io::fcntl_dupfd_cloexec(file, 0)?, path)
    }

    fn checked(policy: &Policy, file: OwnedFd, path: Vec<u8>) -> Result<Handle, Errno> {
        let kind = file_system(&rustix::fs::fstatfs(&file)?);
        policy.check(!KERNEL_FILE_SYSTEMS.contains(&kind), Denied::KernelFile, &path)?;
        let stat = rustix::fs::fstat(&file)?;
        Ok(Handle { file, path, stat })
    }

    /// Returns the type of the file.
    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    /// Returns its `stat`.
    pub(crate) fn stat(&self) -> &Stat {
        &self.stat
    }

    /// Opens the file itself.
    ///
    /// # Errors
    /// The host's; `EACCES` for devices other than the harmless ones in `/dev`.
    pub(crate) fn open(self, policy: &Policy, flags: OFlags) -> Result<OwnedFd, Errno> {
        if flags.contains(OFlags::DIRECTORY) && self.kind() != FileType::Directory {
            return Err(Errno::NOTDIR);
        }
        if flags.contains(OFlags::PATH) {
            return Ok(self.file);
        }
        let number = (rustix::fs::major(self.stat.st_rdev), rustix::fs::minor(self.stat.st_rdev));
        let harmless = self.kind() == FileType::CharacterDevice && HARMLESS.contains(&number);
        let allowed = !is_device(self.kind()) || harmless && policy.is_open_device(&self.path);
        policy.check(allowed, Denied::Device, &self.path)?;
        let flags = (flags - (OFlags::NOFOLLOW | OFlags::CREATE | OFlags::EXCL)) | OFlags::CLOEXEC;
        rustix::fs::open(self.link(), flags, Mode::empty())
    }

    /// Returns a host path of this file, for calls that take no handle.
    pub(crate) fn link(&self) -> String {
        format!("/proc/self/fd/{}", self.file.as_raw_fd())
    }

    /// Returns the target of the symbolic link that the handle refers to.
    pub(crate) fn read_link(&self) -> Result<Vec<u8>, Errno> {
        Ok(rustix::fs::readlinkat(&self.file, "", Vec::new())?.into_bytes())
    }

    /// Returns the `statfs` of its file system.
    pub(crate) fn stat_fs(&self) -> Result<StatFs, Errno> {
        rustix::fs::fstatfs(&self.file)
    }
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Returns the type of a file system. The field's own type differs between hosts; the numbers have 32 bits.
#[allow(clippy::unnecessary_cast)]
fn file_system(stat: &StatFs) -> u32 {
    stat.f_type as u64 as u32
}

/// Opens a handle for a path, without following links. On hosts without `openat2` (Linux before 5.6), the path of the result is
/// checked afterwards.
fn open_path(path: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Err(Errno::NOSYS | Errno::PERM) => {
            let file = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
            if path_of(file.as_fd()).as_deref() == Some(path) { Ok(file) } else { Err(Errno::LOOP) }
        }
        result => result,
    }
}

/// Returns the folder of a host file, and the file's name in it.
///
/// # Errors
/// `EBUSY` for the root; those of [`Handle::new`].
pub(crate) fn parent<'p>(policy: &Policy, path: &'p [u8]) -> Result<(Handle, &'p [u8]), Errno> {
    let slash = path.iter().rposition(|&b| b == b'/').ok_or(Errno::NOENT)?;
    let (folder, name) = (&path[..slash.max(1)], &path[slash + 1..]);
    if name.is_empty() {
        return Err(Errno::BUSY);
    }
    let folder = Handle::new(policy, folder)?;
    if folder.kind() == FileType::Directory { Ok((folder, name)) } else { Err(Errno::NOTDIR) }
}

/// Creates a new file.
///
/// # Errors
/// The host's, including `EEXIST`; those of [`parent`].
pub(crate) fn create(policy: &Policy, path: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let (folder, name) = parent(policy, path)?;
    let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, mode)
}

/// Creates an unnamed file in a folder.
///
/// # Errors
/// The host's; those of [`Handle::new`].
pub(crate) fn create_unnamed(policy: &Policy, folder: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(Handle::new(policy, folder)?, ".", flags | OFlags::CLOEXEC, mode)
}

/// Changes the times of the file behind a handle; for a symbolic link, those of the link.
///
/// # Errors
/// The host's.
pub(crate) fn set_times(file: &Handle, times: &rustix::fs::Timestamps) -> Result<(), Errno> {
    rustix::fs::utimensat(CWD, file.link(), times, AtFlags::empty())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::super::access::Access;
    use super::*;

    fn policy() -> Policy {
        Policy::new(&Access { read: None, write: vec!["/".into()], ..Access::standard() }, None)
    }

    #[test]
    fn files_of_kernel_file_systems_are_refused_wherever_they_are() {
        let policy = policy();
        for path in ["/proc", "/proc/self/mem", "/proc/sys/kernel", "/proc/version"] {
            assert_eq!(Handle::new(&policy, path.as_bytes()).err(), Some(not_there(path)), "{path}");
        }
        let open = std::fs::File::open("/proc/version").expect("there");
        let again = Handle::of(&policy, open.as_fd(), b"/somewhere".to_vec());
        assert_eq!(again.err(), Some(Errno::ACCESS));
        assert!(policy.refusals().iter().all(|refusal| refusal.denied == Denied::KernelFile));
    }

    /// Returns the error for a path that must not be opened: `self` is a link.
    fn not_there(path: &str) -> Errno {
        if path.contains("self/") { Errno::LOOP } else { Errno::ACCESS }
    }

    #[test]
    fn devices_are_opened_only_in_dev_and_only_harmless_ones() {
        let policy = policy();
        let open = |path: &str| Handle::new(&policy, path.as_bytes())?.open(&policy, OFlags::RDWR);
        assert!(open("/dev/null").is_ok() && open("/dev/zero").is_ok());
        for path in ["/dev/random", "/dev/ptmx"] {
            if std::path::Path::new(path).exists() {
                assert!(open(path).is_err(), "{path}");
            }
        }
    }

    #[test]
    fn a_handle_opens_its_file_even_when_the_name_now_refers_to_another() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().canonicalize().expect("real path").join("file");
        std::fs::write(&path, "first").expect("file");
        let policy = policy();
        let handle = Handle::new(&policy, path.as_os_str().as_bytes()).expect("there");
        std::fs::rename(&path, path.with_extension("moved")).expect("moved");
        std::os::unix::fs::symlink("/dev/null", &path).expect("link");
        let file = handle.open(&policy, OFlags::RDONLY).expect("opened");
        assert_eq!(std::io::read_to_string(std::fs::File::from(file)).expect("read"), "first");
        let link = Handle::new(&policy, path.as_os_str().as_bytes()).expect("there");
        assert_eq!((link.kind(), link.read_link()), (FileType::Symlink, Ok(b"/dev/null".to_vec())));
        let times = rustix::fs::Timestamps {
            last_access: rustix::fs::Timespec { tv_sec: 7, tv_nsec: 0 },
            last_modification: rustix::fs::Timespec { tv_sec: 7, tv_nsec: 0 },
        };
        set_times(&link, &times).expect("a link's own times");
        assert_eq!(rustix::fs::lstat(&path).expect("there").st_mtime, 7);
    }
}
