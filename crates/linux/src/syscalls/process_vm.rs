//! Transfers between the memories of two processes (process_vm_readv(2)), and comparison of what processes have (kcmp(2)).

use std::cmp::Ordering;

use rustix::io::Errno;

use super::transfer::{Piece, pieces};
use super::{Args, Result};
use crate::attributes::capability;
use crate::kernel::Kernel;
use crate::mm::address_space::AddressSpace;
use crate::mm::user;
use crate::table::Id;

/// Bytes copied at a time: an error leaves what has been copied in whole pieces of this size.
const PORTION: u64 = 64 << 10;

type Outcome<T> = std::result::Result<T, Errno>;

/// Returns the address space of a process that the running one may access: itself, or one of the same user.
///
/// # Errors
/// `ESRCH` when there is none with this number; `EPERM`.
fn accessible(k: &Kernel<'_>, pid: u64) -> Outcome<Id<AddressSpace>> {
    let process = k.all_processes().find(|process| u64::from(process.pid) == pid & 0xffff_ffff && !process.ended);
    let process = process.ok_or(Errno::SRCH)?;
    let own = &k.process.attributes;
    let of_user = [process.attributes.users.real, process.attributes.users.effective, process.attributes.users.saved];
    let allowed = of_user.iter().all(|&user| user == own.users.real) || own.capabilities.has(capability::SYS_PTRACE);
    if process.pid == k.process.pid || allowed { Ok(process.space) } else { Err(Errno::PERM) }
}

/// Does something while another address space is active.
fn within<T>(k: &mut Kernel<'_>, space: Id<AddressSpace>, act: impl FnOnce(&mut Kernel<'_>) -> T) -> T {
    k.note_touched();
    let own = k.mem.active();
    let other = k.spaces[space].id;
    k.mem.activate(other);
    let result = act(k);
    if k.mem.has_fresh() {
        let toucher = k.toucher();
        k.spaces[space].pages.touched(k.mem, toucher);
    }
    k.mem.activate(own);
    result
}

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    ToUs,
    FromUs,
}

/// Copies one portion between an address of the running process and one of `space`.
fn copy(k: &mut Kernel<'_>, space: Id<AddressSpace>, way: Way, here: u64, there: u64, len: usize) -> Outcome<()> {
    match way {
        Way::ToUs => {
            let bytes = within(k, space, |k| user::read_bytes(k.mem, there, len))?;
            user::write_bytes(k.mem, here, &bytes)
        }
        Way::FromUs => {
            let bytes = user::read_bytes(k.mem, here, len)?;
            within(k, space, |k| user::write_bytes(k.mem, there, &bytes))
        }
    }
}

/// Iterates over the parts in which pieces of two lists correspond: both addresses and the length.
fn parts(ours: &[Piece], theirs: &[Piece]) -> Vec<(u64, u64, u64)> {
    let (mut ours, mut theirs) = (ours.iter().copied(), theirs.iter().copied());
    let (mut here, mut there) = (ours.next(), theirs.next());
    let mut parts = Vec::new();
    while let (Some(a), Some(b)) = (here, there) {
        let len = a.len.min(b.len).min(PORTION);
        if len > 0 {
            parts.push((a.addr, b.addr, len));
        }
        let rest = |piece: Piece| Piece { addr: piece.addr.wrapping_add(len), len: piece.len - len };
        here = if a.len == len { ours.next() } else { Some(rest(a)) };
        there = if b.len == len { theirs.next() } else { Some(rest(b)) };
    }
    parts
}

fn transfer(k: &mut Kernel<'_>, a: &Args, way: Way) -> Result {
    if a[5] != 0 {
        return Err(Errno::INVAL);
    }
    let ours = pieces(k, a[1], a[2])?;
    let theirs = pieces(k, a[3], a[4])?;
    let space = accessible(k, a[0])?;
    let mut done = 0;
    for (here, there, len) in parts(&ours, &theirs) {
        match copy(k, space, way, here, there, len as usize) {
            Ok(()) => done += len,
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
        if way == Way::FromUs {
            note_code(k, space, there, len);
        }
    }
    Ok(done)
}

/// Notes that code of other processes may have changed, if what was written can be executed.
fn note_code(k: &mut Kernel<'_>, space: Id<AddressSpace>, addr: u64, len: u64) {
    let is_code =
        within(k, space, |k| k.mem.regions_within(addr, addr.saturating_add(len)).any(|region| region.prot.exec));
    if is_code {
        k.process.code_changed |= k.process.space == space;
        for other in k.other_processes.iter_mut().filter(|other| other.space == space) {
            other.code_changed = true;
        }
    }
}

pub(super) fn process_vm_readv(k: &mut Kernel<'_>, a: &Args) -> Result {
    transfer(k, a, Way::ToUs)
}

pub(super) fn process_vm_writev(k: &mut Kernel<'_>, a: &Args) -> Result {
    transfer(k, a, Way::FromUs)
}

/// `kcmp`: whether two processes share a file, their memory or their open files; otherwise their order.
pub(super) fn kcmp(k: &mut Kernel<'_>, a: &Args) -> Result {
    const FILE: u64 = 0;
    const MEMORY: u64 = 1;
    const SHARED_BY_THREADS: std::ops::RangeInclusive<u64> = 2..=6;
    let spaces = (accessible(k, a[0])?, accessible(k, a[1])?);
    let process = |pid: u64| k.all_processes().find(|process| u64::from(process.pid) == pid & 0xffff_ffff);
    let (Some(first), Some(second)) = (process(a[0]), process(a[1])) else { return Err(Errno::SRCH) };
    let order = match a[2] {
        FILE => {
            let description =
                |files: &crate::fs::files::Files, fd: u64| files.open_file(fd as i32).map(|f| f.description);
            description(&first.files, a[3])?.cmp(&description(&second.files, a[4])?)
        }
        MEMORY if spaces.0 == spaces.1 => Ordering::Equal,
        kind if kind == MEMORY || SHARED_BY_THREADS.contains(&kind) => first.pid.cmp(&second.pid),
        _ => return Err(Errno::INVAL),
    };
    Ok(match order {
        Ordering::Equal => 0,
        Ordering::Less => 1,
        Ordering::Greater => 2,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_different_lengths_correspond_byte_by_byte() {
        let list = |lens: &[(u64, u64)]| lens.iter().map(|&(addr, len)| Piece { addr, len }).collect::<Vec<_>>();
        let (ours, theirs) = (list(&[(100, 3), (200, 0), (300, 5)]), list(&[(1000, 4), (2000, 10)]));
        assert_eq!(parts(&ours, &theirs), [(100, 1000, 3), (300, 1003, 1), (301, 2000, 4)]);
        assert_eq!(parts(&[], &theirs), []);
        assert_eq!(parts(&list(&[(0, PORTION + 1)]), &list(&[(7, PORTION + 1)])).len(), 2);
    }
}
