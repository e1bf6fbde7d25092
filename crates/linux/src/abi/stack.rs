//! The initial stack: arguments, environment and auxiliary vector in the layout of arm64 Linux.

use fxscope_guestmem::PAGE;
use fxscope_guestmem::{Memory, Prot, Segment};

use crate::abi::layout::{STACK_ROOM, STACK_TOP};
use crate::abi::load::{Arguments, Loaded};
use crate::platform::Platform;
use crate::signal::frame;
use crate::start_error::StartError;

/// Types of auxiliary vector entries (Linux `auxvec.h`).
pub(crate) mod at {
    pub const NULL: u64 = 0;
    pub const PHDR: u64 = 3;
    pub const PHENT: u64 = 4;
    pub const PHNUM: u64 = 5;
    pub const PAGESZ: u64 = 6;
    pub const BASE: u64 = 7;
    pub const FLAGS: u64 = 8;
    pub const ENTRY: u64 = 9;
    pub const UID: u64 = 11;
    pub const EUID: u64 = 12;
    pub const GID: u64 = 13;
    pub const EGID: u64 = 14;
    pub const PLATFORM: u64 = 15;
    pub const HWCAP: u64 = 16;
    pub const CLKTCK: u64 = 17;
    pub const SECURE: u64 = 23;
    pub const RANDOM: u64 = 25;
    pub const HWCAP2: u64 = 26;
    pub const EXECFN: u64 = 31;
    pub const MINSIGSTKSZ: u64 = 51;
}

/// Clock ticks per second, the unit of `times`.
pub const CLOCK_TICKS: u64 = 100;

/// A new program's stack.
pub(crate) struct InitialStack {
    /// The stack pointer.
    pub sp: u64,
    /// The auxiliary vector.
    pub auxv: Vec<u8>,
}

/// Maps the stack and fills it.
pub(crate) fn build(
    mem: &mut Memory,
    program: &Loaded,
    platform: &Platform,
    setup: &Arguments,
    random: [u8; 16],
) -> Result<InitialStack, StartError> {
    let image = &program.image;
    let bytes = setup.stack_bytes.next_multiple_of(PAGE);
    if !(PAGE..=STACK_ROOM / 2).contains(&bytes) {
        return Err(StartError::StackSize { bytes: setup.stack_bytes });
    }
    let prot = if image.executable_stack { Prot::RWX } else { Prot::RW };
    mem.map(STACK_TOP - bytes, bytes, prot, Segment::Stack).map_err(|_| StartError::StackSize { bytes })?;

    // Strings first, lowest address first: platform name, random bytes, arguments, environment, file name.
    let mut strings = Strings::default();
    let platform_name = strings.push(b"aarch64");
    strings.align(16);
    let random_bytes = strings.bytes(&random);
    let args: Vec<usize> = setup.args.iter().map(|s| strings.push(s)).collect();
    let env: Vec<usize> = setup.env.iter().map(|s| strings.push(s)).collect();
    let file_name = strings.push(&setup.program);
    // Linux ends the stack with a zero word.
    strings.bytes(&[0; 8]);
    strings.align(16);

    let base = STACK_TOP - strings.0.len() as u64;
    let at_string = |offset: &usize| base + *offset as u64;
    let mut words = vec![args.len() as u64];
    words.extend(args.iter().map(at_string));
    words.push(0);
    words.extend(env.iter().map(at_string));
    words.push(0);
    let (uid, euid) = (rustix::process::getuid(), rustix::process::geteuid());
    let (gid, egid) = (rustix::process::getgid(), rustix::process::getegid());
    let aux = [
        (at::MINSIGSTKSZ, frame::MIN_SIGNAL_STACK),
        (at::HWCAP, platform.hwcap),
        (at::PAGESZ, platform.page_bytes),
        (at::CLKTCK, CLOCK_TICKS),
        (at::PHDR, image.program_headers()),
        (at::PHENT, 56),
        (at::PHNUM, image.program_header_count()),
        (at::BASE, program.interpreter_base),
        (at::FLAGS, 0),
        (at::ENTRY, image.entry()),
        (at::UID, u64::from(uid.as_raw())),
        (at::EUID, u64::from(euid.as_raw())),
        (at::GID, u64::from(gid.as_raw())),
        (at::EGID, u64::from(egid.as_raw())),
        (at::SECURE, 0),
        (at::RANDOM, at_string(&random_bytes)),
        (at::HWCAP2, platform.hwcap2),
        (at::EXECFN, at_string(&file_name)),
        (at::PLATFORM, at_string(&platform_name)),
        (at::NULL, 0),
    ];
    let aux: Vec<u64> = aux.iter().flat_map(|&(kind, value)| [kind, value]).collect();
    words.extend(&aux);

    // The stack pointer is a multiple of 16.
    let table = (words.len() * 8).next_multiple_of(16) as u64;
    let used = strings.0.len() as u64 + table;
    if used > bytes / 4 {
        return Err(StartError::ArgumentsTooLong { bytes: used, limit: bytes / 4 });
    }
    let sp = base - table;
    let no_room = |_| StartError::NoMemory { bytes: used };
    mem.write(sp, bytemuck::cast_slice(&words)).map_err(no_room)?;
    mem.write(base, &strings.0).map_err(no_room)?;
    Ok(InitialStack { sp, auxv: bytemuck::cast_slice(&aux).to_vec() })
}

#[derive(Default)]
struct Strings(Vec<u8>);

impl Strings {
    /// Appends a string with its terminating zero; returns its offset.
    fn push(&mut self, text: &[u8]) -> usize {
        let at = self.bytes(text);
        self.0.push(0);
        at
    }
    fn bytes(&mut self, bytes: &[u8]) -> usize {
        let at = self.0.len();
        self.0.extend_from_slice(bytes);
        at
    }
    fn align(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }
}
