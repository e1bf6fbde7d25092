//! Loads and stores of general-purpose and SIMD&FP registers, single and in pairs: host instructions if the translation is cached and the
//! access lies in one page. Otherwise the unit is left, and the interpreter executes the rest of the block.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder as _, MemFlagsData, Type, Value, types};
use fxscope_aarch64::table::bits;
use fxscope_guestmem::View;
use fxscope_isa::Access;

use super::{At, Emitter};

/// What an access transfers.
#[derive(Clone, Copy)]
struct Transfer {
    /// The type in memory of each register's part.
    ty: Type,
    /// Whether a loaded value is sign-extended, to 32 or (`wide`) 64 bits.
    signed: bool,
    wide: bool,
    /// Whether there are two registers.
    pair: bool,
    loads: bool,
}

impl Transfer {
    fn bytes(self) -> i64 {
        i64::from(self.ty.bytes()) << u32::from(self.pair)
    }
}

/// How the address of an access is formed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Base and offset.
    Offset,
    /// Base, to which the offset is added afterwards.
    PostIndex,
    /// Base and offset, which is also the new base.
    PreIndex,
    /// Base and index register, which is extended as `option` says.
    Index { option: u32 },
    /// An address in the instruction.
    Literal,
}

/// Returns what an instruction transfers and how its address is formed; `None`: it is none of those handled here.
fn decode(at: At<'_>) -> Option<(Transfer, Mode)> {
    let mnemonic = at.name.split(' ').next()?;
    let word = at.word;
    // Those of SVE have the same mnemonics, but belong to another part of the instruction set.
    if bits(word, 25, 1) == 1 || bits(word, 27, 1) == 0 {
        return None;
    }
    if at.name.contains("SIMD") {
        return decode_vector(at, mnemonic).map(|transfer| (transfer, mode(at)));
    }
    let by_bit = |bit: u32, zero, one| if bits(word, bit, 1) == 0 { zero } else { one };
    let plain = |ty, loads| Transfer { ty, signed: false, wide: false, pair: false, loads };
    let signed = |ty, wide| Transfer { ty, signed: true, wide, pair: false, loads: true };
    let width = by_bit(30, types::I32, types::I64);
    let pair_width = by_bit(31, types::I32, types::I64);
    let transfer = match mnemonic {
        "LDRB" | "LDURB" => plain(types::I8, true),
        "STRB" | "STURB" => plain(types::I8, false),
        "LDRH" | "LDURH" => plain(types::I16, true),
        "STRH" | "STURH" => plain(types::I16, false),
        "LDR" | "LDUR" => plain(width, true),
        "STR" | "STUR" => plain(width, false),
        "LDRSB" | "LDURSB" => signed(types::I8, bits(word, 22, 1) == 0),
        "LDRSH" | "LDURSH" => signed(types::I16, bits(word, 22, 1) == 0),
        "LDRSW" | "LDURSW" => signed(types::I32, true),
        "LDP" | "LDNP" => Transfer { pair: true, ..plain(pair_width, true) },
        "STP" | "STNP" => Transfer { pair: true, ..plain(pair_width, false) },
        "LDPSW" => Transfer { pair: true, ..signed(types::I32, true) },
        _ => return None,
    };
    let access = if transfer.loads { Access::Load } else { Access::Store };
    at.info.mem.filter(|op| op.access == access && i64::from(op.bytes) == transfer.bytes())?;
    Some((transfer, mode(at)))
}

/// Returns what a load or store of vector registers transfers; `None`: parts of less than 32 bits, or another instruction.
fn decode_vector(at: At<'_>, mnemonic: &str) -> Option<Transfer> {
    let op = at.info.mem?;
    let (loads, pair) = match mnemonic {
        "LDR" | "LDUR" => (true, false),
        "STR" | "STUR" => (false, false),
        "LDP" | "LDNP" => (true, true),
        "STP" | "STNP" => (false, true),
        _ => return None,
    };
    let ty = match op.bytes >> u32::from(pair) {
        4 => types::F32,
        8 => types::F64,
        16 => types::F64X2,
        _ => return None,
    };
    Some(Transfer { ty, signed: false, wide: false, pair, loads })
}

fn mode(at: At<'_>) -> Mode {
    if at.name.ends_with("[Post-index]") {
        Mode::PostIndex
    } else if at.name.ends_with("[Pre-index]") {
        Mode::PreIndex
    } else if at.name.contains("(register") {
        Mode::Index { option: bits(at.word, 13, 3) }
    } else if at.name.contains("(literal") {
        Mode::Literal
    } else {
        Mode::Offset
    }
}

impl Emitter<'_> {
    /// Emits a load or store, or a prefetch. Returns `false`, and emits nothing, for other instructions.
    pub(super) fn access(&mut self, at: At<'_>) -> bool {
        if at.name.starts_with("PRFM") {
            // Its words are left to the interpreter's function.
            return self.trace.is_none();
        }
        let Some((transfer, mode)) = decode(at) else { return false };
        let (address, base) = self.address(at, mode);
        if transfer.loads {
            self.load(at, transfer, address, base);
        } else {
            self.store(at, transfer, address, base);
        }
        true
    }

    /// Returns the address of an access, and the new value of its base register if there is one.
    fn address(&mut self, at: At<'_>, mode: Mode) -> (Value, Option<Value>) {
        let inst = at.inst;
        if mode == Mode::Literal {
            return (self.constant(inst.imm as u64), None);
        }
        let base = self.x(inst.rn);
        match mode {
            Mode::Index { option } => {
                let index = self.x(inst.rm);
                let index = self.extend(index, option);
                let offset = self.b.ins().ishl_imm_u(index, i64::from(inst.aux & 7));
                (self.b.ins().iadd(base, offset), None)
            }
            Mode::PostIndex => {
                let next = self.b.ins().iadd_imm_s(base, inst.imm);
                (base, Some(next))
            }
            Mode::PreIndex => {
                let next = self.b.ins().iadd_imm_s(base, inst.imm);
                (next, Some(next))
            }
            Mode::Offset | Mode::Literal if inst.imm == 0 => (base, None),
            Mode::Offset | Mode::Literal => (self.b.ins().iadd_imm_s(base, inst.imm), None),
        }
    }

    /// Emits the test whether an access hits; if not, the unit is left before the instruction. Returns the host's address of the
    /// access's first byte. `tag` is the offset in an entry of the page that must be the access's ([`View`]).
    fn hit(&mut self, at: At<'_>, address: Value, bytes: i64, tag: usize) -> Value {
        let trusted = MemFlagsData::trusted();
        let (above, shift) = (i64::from(64 - View::ADDRESS_BITS), i64::from(View::PAGE_SHIFT));
        let scale = View::ENTRY_BYTES.ilog2();
        // The entry of the page of the first byte has the page of the last byte only if they are the same page.
        let last = self.b.ins().iadd_imm_s(address, bytes - 1);
        let last = self.b.ins().ishl_imm_u(last, above);
        let page = self.b.ins().ushr_imm_u(last, above + shift);
        let offset = self.b.ins().ushr_imm_u(address, shift - i64::from(scale));
        let offset = self.b.ins().band_imm_u(offset, (View::ENTRIES as i64 - 1) << scale);
        let entry = self.b.ins().iadd(self.fixed.translations, offset);
        let cached = self.b.ins().load(types::I64, trusted, entry, tag as i32);
        let (miss, inside) = (self.cold_block(), self.b.create_block());
        let same = self.compare(IntCC::Equal, cached, page);
        let base = self.b.ins().load(types::I64, trusted, entry, View::BASE as i32);
        let in_page = self.b.ins().band_imm_u(address, (1 << shift) - 1);
        let place = self.b.ins().iadd(base, in_page);
        let fits = self.compare(IntCC::UnsignedLessThanOrEqual, place, self.fixed.last_place);
        let hits = self.b.ins().band(same, fits);
        self.b.ins().brif(hits, inside, &[], miss, &[]);
        self.b.switch_to_block(miss);
        self.leave_before(at);
        self.b.switch_to_block(inside);
        self.b.ins().iadd(self.fixed.arena, place)
    }

    fn load(&mut self, at: At<'_>, transfer: Transfer, address: Value, base: Option<Value>) {
        let place = self.hit(at, address, transfer.bytes(), View::READ);
        self.note(address);
        let first = self.read(transfer, place, 0);
        let second = transfer.pair.then(|| self.read(transfer, place, transfer.ty.bytes() as i32));
        if let Some(base) = base {
            self.set_x(at.inst.rn, base);
        }
        self.set_part(at.inst.rd, first);
        if let Some(second) = second {
            self.set_part(at.inst.ra, second);
        }
    }

    /// Writes a loaded value to a general-purpose register (I64) or vector register.
    fn set_part(&mut self, register: u8, value: Value) {
        if self.b.func.dfg.value_type(value) == types::I64 {
            self.set_x(register, value);
        } else {
            self.set_z(register, value);
        }
    }

    /// Reads a register's part at a place on the host; returns the register's new value.
    fn read(&mut self, transfer: Transfer, place: Value, offset: i32) -> Value {
        let value = self.b.ins().load(transfer.ty, MemFlagsData::new().with_notrap(), place, offset);
        if transfer.ty == types::I64 || !transfer.ty.is_int() {
            return value;
        }
        match (transfer.signed, transfer.wide) {
            (false, _) => self.b.ins().uextend(types::I64, value),
            (true, true) => self.b.ins().sextend(types::I64, value),
            (true, false) => {
                let half = self.b.ins().sextend(types::I32, value);
                self.b.ins().uextend(types::I64, half)
            }
        }
    }

    fn store(&mut self, at: At<'_>, transfer: Transfer, address: Value, base: Option<Value>) {
        let data = [Some(at.inst.rd), transfer.pair.then_some(at.inst.ra)];
        let part = |emitter: &mut Self, register| match transfer.ty.is_int() {
            true => emitter.x(register),
            false => emitter.z(register, transfer.ty),
        };
        let data: Vec<Value> = data.into_iter().flatten().map(|register| part(self, register)).collect();
        let place = self.hit(at, address, transfer.bytes(), View::WRITE);
        self.note(address);
        for (value, n) in data.into_iter().zip(0..) {
            let whole = transfer.ty == types::I64 || !transfer.ty.is_int();
            let value = if whole { value } else { self.b.ins().ireduce(transfer.ty, value) };
            let offset = n * transfer.ty.bytes() as i32;
            self.b.ins().store(MemFlagsData::new().with_notrap(), value, place, offset);
        }
        if let Some(base) = base {
            self.set_x(at.inst.rn, base);
        }
    }
}
