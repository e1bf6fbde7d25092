//! What a process is to the kernel beyond its memory and files: users, capabilities, and settings of `prctl(2)`.

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Number of the last capability (`CAP_CHECKPOINT_RESTORE`, capabilities(7)).
pub(crate) const LAST_CAPABILITY: u32 = 40;

/// All capabilities.
const ALL: u64 = (1 << (LAST_CAPABILITY + 1)) - 1;

/// The user or group numbers of a process: real, effective, saved, and for access to files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ids {
    pub real: u32,
    pub effective: u32,
    pub saved: u32,
    pub files: u32,
}

/// An argument that leaves a number as it is.
const KEEP: u32 = u32::MAX;

impl Ids {
    /// Returns the numbers of a process without `setuid` programs in its past.
    fn new(real: u32, effective: u32) -> Ids {
        Ids { real, effective, saved: effective, files: effective }
    }

    fn has(&self, id: u32) -> bool {
        [self.real, self.effective, self.saved].contains(&id)
    }

    /// `setuid` and `setgid`.
    ///
    /// # Errors
    /// `EPERM`; `EINVAL` for the number -1.
    pub(crate) fn set(&mut self, id: u32, privileged: bool) -> Result<(), Errno> {
        if id == KEEP {
            return Err(Errno::INVAL);
        }
        if privileged {
            *self = Ids { real: id, effective: id, saved: id, files: id };
        } else if id == self.real || id == self.saved {
            (self.effective, self.files) = (id, id);
        } else {
            return Err(Errno::PERM);
        }
        Ok(())
    }

    /// `setreuid` and `setregid`.
    ///
    /// # Errors
    /// `EPERM`.
    pub(crate) fn set_real_and_effective(&mut self, real: u32, effective: u32, privileged: bool) -> Result<(), Errno> {
        let real_fits = real == KEEP || real == self.real || real == self.effective;
        let effective_fits = effective == KEEP || self.has(effective);
        if !privileged && (!real_fits || !effective_fits) {
            return Err(Errno::PERM);
        }
        let before = self.real;
        if real != KEEP {
            self.real = real;
        }
        if effective != KEEP {
            self.effective = effective;
        }
        if real != KEEP || (effective != KEEP && effective != before) {
            self.saved = self.effective;
        }
        self.files = self.effective;
        Ok(())
    }

    /// `setresuid` and `setresgid`.
    ///
    /// # Errors
    /// `EPERM`.
    pub(crate) fn set_all(&mut self, wanted: [u32; 3], privileged: bool) -> Result<(), Errno> {
        if !privileged && !wanted.iter().all(|&id| id == KEEP || self.has(id)) {
            return Err(Errno::PERM);
        }
        for (id, wanted) in [&mut self.real, &mut self.effective, &mut self.saved].into_iter().zip(wanted) {
            if wanted != KEEP {
                *id = wanted;
            }
        }
        self.files = self.effective;
        Ok(())
    }

    /// `setfsuid` and `setfsgid`, which return the previous number and never fail.
    pub(crate) fn set_files(&mut self, id: u32, privileged: bool) -> u32 {
        let before = self.files;
        if id != KEEP && (privileged || self.has(id) || id == self.files) {
            self.files = id;
        }
        before
    }
}

/// The capabilities of a process (capabilities(7)), as masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Capabilities {
    pub effective: u64,
    pub permitted: u64,
    pub inheritable: u64,
}

impl Capabilities {
    /// Returns those of a program that this user executes.
    fn of_user(uid: u32) -> Capabilities {
        let all = if uid == 0 { ALL } else { 0 };
        Capabilities { effective: all, permitted: all, inheritable: 0 }
    }

    /// Returns whether a capability is effective.
    pub(crate) fn has(&self, capability: u32) -> bool {
        self.effective >> capability & 1 == 1
    }
}

/// Numbers of capabilities.
pub(crate) mod capability {
    pub const SETGID: u32 = 6;
    pub const SETUID: u32 = 7;
    pub const SETPCAP: u32 = 8;
    pub const NET_BIND_SERVICE: u32 = 10;
    pub const IPC_OWNER: u32 = 15;
    pub const SYS_PTRACE: u32 = 19;
    pub const SYS_ADMIN: u32 = 21;
    pub const SYS_NICE: u32 = 23;
    pub const SYS_RESOURCE: u32 = 24;
}

/// Bytes and calls of a process's transfers (`/proc/PID/io`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Transfers {
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub reads: u64,
    pub writes: u64,
}

/// A process as the kernel sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attributes {
    pub users: Ids,
    pub groups: Ids,
    /// Supplementary groups.
    pub others: Vec<u32>,
    pub capabilities: Capabilities,
    /// `PR_SET_KEEPCAPS`: the permitted capabilities outlive a change to an ordinary user.
    pub keeps_capabilities: bool,
    /// `PR_SET_DUMPABLE`.
    pub dumpable: bool,
    /// `PR_SET_NO_NEW_PRIVS`.
    pub no_new_privileges: bool,
    /// `PR_SET_CHILD_SUBREAPER`: it adopts descendants whose parent ends.
    pub subreaper: bool,
    /// `PR_SET_PDEATHSIG`: the signal for it at the end of its parent, or 0.
    pub death_signal: u32,
    /// Whether it has executed a program since `fork`.
    pub executed: bool,
    /// Simulated time of its start, in ns.
    pub start_ns: u64,
    pub transfers: Transfers,
}

impl Attributes {
    /// Returns those of the first process: the users and groups are the simulator's.
    pub(crate) fn first() -> Attributes {
        use rustix::process::{getegid, geteuid, getgid, getuid};
        let users = Ids::new(getuid().as_raw(), geteuid().as_raw());
        Attributes {
            users,
            groups: Ids::new(getgid().as_raw(), getegid().as_raw()),
            others: Vec::new(),
            capabilities: Capabilities::of_user(users.effective),
            keeps_capabilities: false,
            dumpable: true,
            no_new_privileges: false,
            subreaper: false,
            death_signal: 0,
            executed: true,
            start_ns: 0,
            transfers: Transfers::default(),
        }
    }

    /// Returns those of a child that starts at `now_ns`.
    pub(crate) fn fork(&self, now_ns: u64) -> Attributes {
        Attributes {
            subreaper: false,
            death_signal: 0,
            executed: false,
            start_ns: now_ns,
            transfers: Transfers::default(),
            ..self.clone()
        }
    }

    /// A program has been executed.
    pub(crate) fn execute(&mut self) {
        (self.executed, self.dumpable, self.keeps_capabilities) = (true, true, false);
        if !self.no_new_privileges || self.capabilities.permitted == ALL {
            let inheritable = self.capabilities.inheritable;
            self.capabilities = Capabilities { inheritable, ..Capabilities::of_user(self.users.effective) };
        }
    }

    /// Adapts the capabilities after the users were `before` (capabilities(7), "Effect of user ID changes on capabilities").
    pub(crate) fn users_changed(&mut self, before: Ids) {
        let is_root = |ids: &Ids| [ids.real, ids.effective, ids.saved].contains(&0);
        let (now, caps) = (self.users, &mut self.capabilities);
        if is_root(&before) && !is_root(&now) && !self.keeps_capabilities {
            (caps.permitted, caps.effective) = (0, 0);
        }
        if before.effective == 0 && now.effective != 0 {
            caps.effective = 0;
        } else if before.effective != 0 && now.effective == 0 {
            caps.effective = caps.permitted;
        }
        if before.effective != now.effective {
            self.dumpable = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_user_can_only_exchange_its_own_numbers() {
        let mut ids = Ids::new(5, 5);
        assert_eq!(ids.set(5, false), Ok(()));
        assert_eq!(ids.set(6, false), Err(Errno::PERM));
        assert_eq!(ids.set_all([KEEP, 6, KEEP], false), Err(Errno::PERM));
        assert_eq!(ids.set_files(6, false), 5);
        assert_eq!(ids, Ids::new(5, 5));
    }

    #[test]
    fn root_becomes_another_user_for_good_or_until_it_returns() {
        let mut ids = Ids::new(0, 0);
        assert_eq!(ids.set_all([KEEP, 7, KEEP], true), Ok(()));
        assert_eq!((ids.effective, ids.saved, ids.files), (7, 0, 7));
        assert_eq!(ids.set(0, false), Ok(()));
        assert_eq!(ids.set(7, true), Ok(()));
        assert_eq!(ids.set(0, false), Err(Errno::PERM));
    }
}
