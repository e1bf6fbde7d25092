//! Fetch: when instructions reach decode.
//!
//! One aligned block is fetched per cycle into a buffer of a few blocks. The delay to the target of a taken branch
//! depends on the predictor that predicted it (manual 3.1–3.4).

use fxscope_calendar::Cycle;
use fxscope_counts::Signals;
use fxscope_machine::Spec;
use fxscope_memory::Hierarchy;

use crate::bind::BoundUop;
use crate::predecode::Predecode;

/// Most blocks of the buffer between fetch and decode.
const BUFFER: usize = 64;

/// The front end of a core.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct Frontend {
    /// When the current block was fetched.
    fetched: Cycle,
    /// When the instructions of the current block can be decoded.
    decodable: Cycle,
    /// The next instruction opens a new block whatever its address.
    restart: bool,
    /// The buffer supplies a loop: nothing is read from the cache.
    buffered: bool,
    predecode: Predecode,
    /// When the last instruction of each of the last blocks was read from the buffer.
    #[serde(with = "fxscope_calendar::array")]
    left: [Cycle; BUFFER],
    blocks: usize,
    capacity: usize,
    to_decode: Cycle,
}

impl Frontend {
    /// An empty front end.
    #[must_use]
    pub fn new(spec: &Spec) -> Frontend {
        let f = &spec.frontend;
        let capacity = (f.buffer_insts * 4 / f.fetch_bytes) as usize;
        Frontend {
            fetched: 0,
            decodable: f.fetch_to_decode,
            restart: true,
            buffered: false,
            predecode: Predecode::new(f),
            left: [0; BUFFER],
            blocks: 0,
            capacity: capacity.clamp(1, BUFFER - 1),
            to_decode: f.fetch_to_decode,
        }
    }

    /// When a micro-operation of the instruction at `addr` can be decoded. A new read of the buffer is not made before
    /// `not_before`.
    #[inline(always)]
    pub fn supply(
        &mut self,
        uop: &BoundUop,
        addr: u64,
        not_before: Cycle,
        memory: &mut Hierarchy,
        signals: &mut Signals,
    ) -> Cycle {
        if uop.opens_block || self.restart {
            if uop.crosses_block && self.restart {
                self.next_block(addr - 4, memory, signals);
            }
            self.next_block(addr, memory, signals);
        }
        self.predecode.read(uop, self.decodable, not_before)
    }

    #[inline(always)]
    fn next_block(&mut self, addr: u64, memory: &mut Hierarchy, signals: &mut Signals) {
        self.restart = false;
        self.left[self.blocks % BUFFER] = self.predecode.at();
        self.blocks += 1;
        let room = self.left[(self.blocks + BUFFER - self.capacity) % BUFFER];
        let at = (self.fetched + 1).max((room + 1).saturating_sub(self.to_decode));
        self.fetched = if self.buffered { at } else { memory.fetch(addr, at, signals) };
        self.decodable = self.fetched + self.to_decode;
    }

    /// When the current block was fetched.
    #[must_use]
    pub fn fetched(&self) -> Cycle {
        self.fetched
    }

    /// Sets whether the buffer supplies the running loop.
    #[inline(always)]
    pub fn supply_from_buffer(&mut self, buffered: bool) {
        self.buffered = buffered;
    }

    /// Whether it does.
    #[inline(always)]
    #[must_use]
    pub fn is_buffered(&self) -> bool {
        self.buffered
    }

    /// A correctly predicted taken branch: its target is fetched `after` cycles after its own block.
    #[inline(always)]
    pub fn taken(&mut self, after: Cycle) {
        self.restart = true;
        // The block after the branch would have been fetched in the next cycle.
        self.fetched += after - 1;
        self.predecode.end_read();
    }

    /// Moves the state `cycles` later.
    pub fn fast_forward(&mut self, cycles: Cycle) {
        self.fetched += cycles;
        self.decodable += cycles;
        self.predecode.fast_forward(cycles);
        self.left.iter_mut().for_each(|t| *t += cycles);
    }

    /// Fetch restarts: the correct path is fetched from `t` on.
    pub fn redirect(&mut self, t: Cycle) {
        self.restart = true;
        self.fetched = self.fetched.max(t.saturating_sub(1));
        self.predecode.end_read();
        // The buffer is flushed.
        self.left = [0; BUFFER];
    }
}
