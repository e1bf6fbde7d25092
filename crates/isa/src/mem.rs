//! What an instruction does to memory: the static part, and the words it leaves in the dynamic stream.
//!
//! Every executed memory instruction appends *words* (`u64`) to the block's dynamic stream, in program
//! order. How many and what they mean follows from its static [`MemOp`]:
//!
//! | [`Shape`]   | words |
//! |-------------|-------|
//! | `Single`    | address |
//! | `Masked`    | address of element 0 (active or not), byte mask |
//! | `Indexed`   | byte mask over the vector (bit *i×esize* set: element *i* active), then the address of every element of the vector, inactive ones included |
//!
//! An address word is the address as the instruction computed it, all 64 bits: its top byte (bits 63:56) does not
//! select the place in memory (top-byte-ignore), but stays in the stream, where it may hold hints for the timing model.
//!
//! A *byte mask* has bit *b* set when byte *b* of the (first) register is active, as an SVE predicate
//! has it, restricted to the lowest bit of each element.

/// What happens at the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum Access {
    /// Demand read.
    Load,
    /// Demand write.
    Store,
    /// Read and write of the same place (LSE atomics, exclusives that write).
    Atomic,
    /// Prefetch for reading into the given cache level (1 or 2); other targets are not memory operations.
    PrefetchLoad(u8),
    /// Prefetch for writing into the given cache level (1 or 2).
    PrefetchStore(u8),
    /// Zero a whole line without reading it (`DC ZVA`).
    ZeroLine,
}

/// How addresses are formed, and so which words are in the dynamic stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum Shape {
    /// One run of consecutive bytes, none masked: scalar, pair, SIMD&FP, SVE LDR/STR.
    Single,
    /// A run of consecutive elements under a predicate: SVE contiguous and structure accesses.
    Masked,
    /// One address for each element: gather and scatter.
    Indexed,
}

/// The static description of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct MemOp {
    /// What happens.
    pub access: Access,
    /// How addresses are formed.
    pub shape: Shape,
    /// Bytes in memory from the first to the last byte touched when all elements are active
    /// (contiguous shapes); bytes of one element in memory for `Indexed`.
    pub bytes: u16,
    /// Bytes of one element in memory (for scalar accesses the access size).
    pub mem_esize: u8,
    /// Bytes of one element in the register: memory elements may be widened. For `Masked` and
    /// `Indexed`, mask bits stand this far apart.
    pub reg_esize: u8,
    /// Number of registers transferred (2 for a pair, 2–4 for a structure).
    pub regs: u8,
    /// Multi-structure access (LD2–LD4, ST2–ST4): elements of the registers are interleaved.
    pub structure: bool,
}

impl MemOp {
    /// Returns one access of `bytes` consecutive bytes to one register.
    #[must_use]
    pub const fn single(access: Access, bytes: u16) -> MemOp {
        let esize = if bytes > 16 { 16 } else { bytes as u8 };
        MemOp { access, shape: Shape::Single, bytes, mem_esize: esize, reg_esize: esize, regs: 1, structure: false }
    }
}
