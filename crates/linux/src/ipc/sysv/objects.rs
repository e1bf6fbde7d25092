//! What all System V objects have in common: numbers, keys, owners and permissions (sysvipc(7), Linux `ipc/util.c`).

use bytemuck::{Pod, Zeroable};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// `IPC_PRIVATE`: a new object without a key.
const PRIVATE: u32 = 0;
/// `IPC_CREAT` and `IPC_EXCL`.
const CREATE: u64 = 0o1000;
const EXCLUSIVE: u64 = 0o2000;
/// Numbers of places (`IPCMNI`): an object's number is its place and how often that has been used.
const PLACES: u32 = 1 << 15;
/// How often a place is counted as used.
const USES: u32 = 1 << 16;

/// `struct ipc64_perm`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct Permissions {
    /// The key, or 0.
    pub key: u32,
    /// Owner.
    pub uid: u32,
    /// Group of the owner.
    pub gid: u32,
    /// Creator.
    pub cuid: u32,
    /// Group of the creator.
    pub cgid: u32,
    /// Rights, as of files.
    pub mode: u32,
    /// How often its place had been used.
    pub sequence: u16,
    pad: u16,
    pad2: u32,
    unused: [u64; 2],
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    /// Number of the process.
    pub pid: u32,
    /// Effective user.
    pub uid: u32,
    /// Effective group.
    pub gid: u32,
    /// Whether it may access what belongs to others (`CAP_IPC_OWNER`, `CAP_SYS_ADMIN`).
    pub privileged: bool,
}

/// Access to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// To look at it.
    Read = 4,
    /// To change it.
    Write = 2,
}

impl Permissions {
    /// Returns those of a new object of the caller, without a key.
    pub(crate) fn of_caller(caller: Caller, mode: u32) -> Permissions {
        let Caller { uid, gid, .. } = caller;
        Permissions { uid, gid, cuid: uid, cgid: gid, mode, ..Permissions::zeroed() }
    }

    /// Checks that the caller may access the object.
    ///
    /// # Errors
    /// `EACCES`.
    pub(crate) fn check(&self, caller: Caller, want: Want) -> Result<(), Errno> {
        let shift = match caller {
            Caller { uid, .. } if uid == self.uid || uid == self.cuid => 6,
            Caller { gid, .. } if gid == self.gid || gid == self.cgid => 3,
            _ => 0,
        };
        let allowed = caller.privileged || self.mode >> shift & want as u32 != 0;
        if allowed { Ok(()) } else { Err(Errno::ACCESS) }
    }

    /// Checks that the caller may remove the object or change its owner.
    ///
    /// # Errors
    /// `EPERM`.
    pub(crate) fn check_owner(&self, caller: Caller) -> Result<(), Errno> {
        let owns = caller.privileged || caller.uid == self.uid || caller.uid == self.cuid;
        if owns { Ok(()) } else { Err(Errno::PERM) }
    }

    /// Changes owner and rights (`IPC_SET`).
    pub(crate) fn change(&mut self, to: &Permissions) {
        (self.uid, self.gid) = (to.uid, to.gid);
        self.mode = self.mode & !0o777 | to.mode & 0o777;
    }
}

#[derive(Serialize, Deserialize)]
struct Entry<T> {
    permissions: Permissions,
    object: T,
}

/// Objects of one kind.
#[derive(Serialize, Deserialize)]
pub(crate) struct Objects<T> {
    places: Vec<Option<Entry<T>>>,
    /// How many objects there have been.
    made: u32,
}

impl<T> Default for Objects<T> {
    fn default() -> Objects<T> {
        Objects { places: Vec::new(), made: 0 }
    }
}

impl<T> Objects<T> {
    /// Returns the number of the object with a key, creating it if the flags say so: `most` objects at most. `check` decides
    /// whether an existing object is large enough; `make` makes a new one.
    ///
    /// # Errors
    /// `EEXIST`, `ENOENT`, `EACCES`, `ENOSPC`, and those of `check` and `make`.
    pub(crate) fn get(
        &mut self,
        (key, flags): (u32, u64),
        caller: Caller,
        most: usize,
        check: impl FnOnce(&T) -> Result<(), Errno>,
        make: impl FnOnce() -> Result<T, Errno>,
    ) -> Result<u32, Errno> {
        if let Some((id, entry)) = self.entries().find(|(_, entry)| key != PRIVATE && entry.permissions.key == key) {
            if flags & CREATE != 0 && flags & EXCLUSIVE != 0 {
                return Err(Errno::EXIST);
            }
            check(&entry.object)?;
            let mode = flags as u32 & 0o777;
            for want in [Want::Read, Want::Write] {
                if (mode | mode >> 3 | mode >> 6) & want as u32 != 0 {
                    entry.permissions.check(caller, want)?;
                }
            }
            return Ok(id);
        }
        if key != PRIVATE && flags & CREATE == 0 {
            return Err(Errno::NOENT);
        }
        if self.entries().count() >= most.min(PLACES as usize) {
            return Err(Errno::NOSPC);
        }
        let object = make()?;
        Ok(self.add(key, flags as u32 & 0o777, caller, object))
    }

    fn add(&mut self, key: u32, mode: u32, caller: Caller, object: T) -> u32 {
        let place = self.places.iter().position(Option::is_none).unwrap_or(self.places.len());
        if place == self.places.len() {
            self.places.push(None);
        }
        let sequence = (self.made % USES) as u16;
        self.made = self.made.wrapping_add(1);
        let permissions = Permissions { key, sequence, ..Permissions::of_caller(caller, mode) };
        self.places[place] = Some(Entry { permissions, object });
        number(place, sequence)
    }

    fn entries(&self) -> impl Iterator<Item = (u32, &Entry<T>)> {
        self.places.iter().enumerate().filter_map(|(place, entry)| {
            let entry = entry.as_ref()?;
            Some((number(place, entry.permissions.sequence), entry))
        })
    }

    /// Iterates over all objects with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.entries().map(|(id, entry)| (id, &entry.object))
    }

    /// Returns the number of the object at a place, for `SEM_STAT` and `MSG_STAT`.
    pub(crate) fn at_place(&self, place: u32) -> Option<u32> {
        let entry = self.places.get(place as usize)?.as_ref()?;
        Some(number(place as usize, entry.permissions.sequence))
    }

    /// Returns the highest place with an object, or 0.
    pub(crate) fn last_place(&self) -> u32 {
        self.places.iter().rposition(Option::is_some).unwrap_or(0) as u32
    }

    /// Returns an object and its permissions.
    ///
    /// # Errors
    /// `EINVAL` when there is none with this number.
    pub(crate) fn find(&mut self, id: u32) -> Result<(&mut Permissions, &mut T), Errno> {
        let entry = self.places.get_mut((id % PLACES) as usize).and_then(Option::as_mut).ok_or(Errno::INVAL)?;
        let right = number((id % PLACES) as usize, entry.permissions.sequence) == id;
        if right { Ok((&mut entry.permissions, &mut entry.object)) } else { Err(Errno::INVAL) }
    }

    /// Returns the permissions of each object with its number.
    pub(crate) fn permissions(&self) -> impl Iterator<Item = (u32, &Permissions, &T)> {
        self.entries().map(|(id, entry)| (id, &entry.permissions, &entry.object))
    }

    /// Removes an object.
    ///
    /// # Errors
    /// `EINVAL` when there is none with this number; `EPERM` when it belongs to somebody else.
    pub(crate) fn remove(&mut self, id: u32, caller: Caller) -> Result<T, Errno> {
        let (permissions, _) = self.find(id)?;
        permissions.check_owner(caller)?;
        let entry = self.places[(id % PLACES) as usize].take();
        entry.map(|entry| entry.object).ok_or(Errno::INVAL)
    }
}

/// Returns an object's number, which is never negative.
fn number(place: usize, sequence: u16) -> u32 {
    place as u32 | (u32::from(sequence) << 15) & 0x7fff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: Caller = Caller { pid: 1, uid: 0, gid: 0, privileged: true };
    const USER: Caller = Caller { pid: 2, uid: 7, gid: 7, privileged: false };

    fn get(objects: &mut Objects<u8>, key: u32, flags: u64, caller: Caller) -> Result<u32, Errno> {
        objects.get((key, flags), caller, 3, |_| Ok(()), || Ok(0))
    }

    #[test]
    fn keys_find_objects_and_numbers_are_not_used_again_at_once() {
        let mut objects = Objects::default();
        assert_eq!(get(&mut objects, 5, 0o600, ROOT), Err(Errno::NOENT));
        let id = get(&mut objects, 5, 0o1600, ROOT).expect("made");
        assert_eq!(get(&mut objects, 5, 0o600, ROOT), Ok(id));
        assert_eq!(get(&mut objects, 5, 0o3600, ROOT), Err(Errno::EXIST));
        objects.remove(id, ROOT).expect("removed");
        let next = get(&mut objects, 5, 0o1600, ROOT).expect("made");
        assert!(next != id && objects.find(id).is_err() && objects.find(next).is_ok());
    }

    #[test]
    fn objects_of_others_are_protected_and_their_number_is_limited() {
        let mut objects = Objects::default();
        let id = get(&mut objects, 5, 0o1604, ROOT).expect("made");
        assert_eq!(get(&mut objects, 5, 0o400, USER), Ok(id));
        assert_eq!(get(&mut objects, 5, 0o600, USER), Err(Errno::ACCESS));
        assert_eq!(objects.remove(id, USER), Err(Errno::PERM));
        assert!(get(&mut objects, 0, 0, USER).is_ok() && get(&mut objects, 0, 0, USER).is_ok());
        assert_eq!(get(&mut objects, 0, 0, USER), Err(Errno::NOSPC));
    }
}
