//! Stacks of threads: which function called which, for messages.
//!
//! Frames are followed by the frame pointer, `x29`, as the procedure call standard has it (AAPCS64, section 6.4.6): it points to the
//! caller's `x29` and the return address. Compilers keep it in all functions that call others. Memory is only looked at: a damaged
//! stack ends the list.

use fxscope_aarch64::Cpu;
use fxscope_guestmem::{Memory, SpaceId};
use serde::{Deserialize, Serialize};

use crate::guest::Guest;
use crate::mm::mapped::MappedFiles;
use crate::symbols::Symbols;
use crate::thread::Thread;

/// Frames that are followed; deeper ones are not shown.
const MOST_FRAMES: usize = 64;
/// Bytes of a function's name that are kept.
const NAME_BYTES: usize = 256;

/// A function in which a thread is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Address of the next instruction or, in callers, of the call.
    pub address: u64,
    /// Name of the function, if it is known.
    pub function: Option<String>,
    /// Distance of the address from the start of the function in bytes; 0 if that is not known.
    pub offset: u64,
    /// The file that is mapped there, as programs see its path, and the offset in it.
    pub file: Option<(Vec<u8>, u64)>,
    /// Where the function has put its caller's frame pointer: it has returned when the stack pointer is above. 0: nowhere.
    pub record: u64,
}

impl std::fmt::Display for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.function {
            Some(name) => write!(f, "{name}+{:#x}", self.offset),
            None => write!(f, "{:#x}", self.address),
        }
    }
}

/// Where to begin: registers of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Registers {
    pub pc: u64,
    pub frame_pointer: u64,
    pub link: u64,
}

impl Registers {
    pub(crate) fn of(cpu: &Cpu) -> Registers {
        Registers { pc: cpu.pc, frame_pointer: cpu.x(29), link: cpu.x(30) }
    }
}

/// A process as its stacks need it.
#[derive(Clone, Copy)]
pub(crate) struct Walker<'a> {
    pub memory: &'a Memory,
    pub space: SpaceId,
    pub symbols: &'a Symbols,
    pub mapped: &'a MappedFiles,
}

impl Walker<'_> {
    /// Returns the frames of a thread with these registers, the innermost first.
    pub(crate) fn frames(&self, from: Registers) -> Vec<Frame> {
        let calls = self.walk(from).into_iter().enumerate();
        calls
            .map(|(depth, (next, record))| self.frame(if depth == 0 { next } else { next.wrapping_sub(4) }, record))
            .collect()
    }

    /// Returns where a thread with these registers is, and the addresses to which its functions return, the innermost first.
    pub(crate) fn addresses(&self, from: Registers) -> Vec<u64> {
        self.walk(from).into_iter().map(|(address, _)| address).collect()
    }

    /// Returns the address at which each function continues, the innermost first, and where it has its caller's frame pointer.
    fn walk(&self, from: Registers) -> Vec<(u64, u64)> {
        let Registers { pc, mut frame_pointer, link } = from;
        let own_frame = !self.is_in_caller(pc, link, frame_pointer);
        let mut frames = vec![(pc, if own_frame { frame_pointer } else { 0 })];
        if !own_frame {
            frames.push((link, frame_pointer));
        }
        while frames.len() < MOST_FRAMES {
            let Some((caller_frame, back)) = self.record(frame_pointer) else { break };
            if back == 0 {
                break;
            }
            frame_pointer = caller_frame;
            frames.push((back, frame_pointer));
        }
        frames
    }

    /// Returns the frame pointer and the return address that a function has put at an address.
    fn record(&self, at: u64) -> Option<(u64, u64)> {
        let back = self.memory.peek(self.space, at.checked_add(8)?)?;
        Some((self.memory.peek(self.space, at)?, back))
    }

    /// Returns whether the function at `pc` has no frame of its own and will return to `link`: the frame pointer is still its
    /// caller's. In a function with a frame, the link register is what it has put there, or leads into itself after a call.
    fn is_in_caller(&self, pc: u64, link: u64, frame_pointer: u64) -> bool {
        let start = |address: u64| self.symbols.at(address).map(|place| place.start);
        let (Some(own), Some(caller)) = (start(pc), start(link.wrapping_sub(4))) else { return false };
        own != caller && self.record(frame_pointer).is_none_or(|(_, back)| back != link)
    }

    fn frame(&self, address: u64, record: u64) -> Frame {
        let place = self.symbols.at(address);
        Frame {
            address,
            function: place.map(|place| kept(place.function)),
            offset: place.map_or(0, |place| place.offset),
            file: self.mapped.at(address).map(|mapped| (mapped.path, mapped.offset)),
            record,
        }
    }
}

/// Returns the part of a name that is kept.
fn kept(name: &str) -> String {
    let end = (0..=NAME_BYTES.min(name.len())).rev().find(|&end| name.is_char_boundary(end)).unwrap_or(0);
    name[..end].to_owned()
}

impl Guest {
    /// Returns the stack of a thread, the innermost function first; empty if there is no such thread.
    #[must_use]
    pub fn stack_of(&self, tid: u32) -> Vec<Frame> {
        let thread = self.threads.values().find(|thread| thread.tid == tid && !thread.ended);
        thread.map_or_else(Vec::new, |thread| self.walker_of(thread).frames(Registers::of(&thread.cpu)))
    }

    /// Returns where the current thread is, and the addresses to which its functions return, the innermost first.
    #[must_use]
    pub fn stack_addresses(&self) -> Vec<u64> {
        self.walker_of(self.thread()).addresses(Registers::of(self.cpu()))
    }

    fn walker_of(&self, thread: &Thread) -> Walker<'_> {
        let process = &self.processes[thread.process];
        let space = &self.spaces[process.space];
        Walker { memory: &self.memory, space: space.id, symbols: &process.symbols, mapped: &space.mapped }
    }
}

#[cfg(test)]
mod tests {
    use super::kept;

    #[test]
    fn long_names_are_cut_between_characters() {
        assert_eq!(kept("main"), "main");
        assert_eq!(kept(&"x".repeat(1000)).len(), 256);
        assert_eq!(kept(&format!("x{}", "é".repeat(200))).len(), 255);
    }
}
