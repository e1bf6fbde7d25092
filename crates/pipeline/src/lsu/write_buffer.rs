//! The write buffer between committed stores and the L1D cache (manual 7.4).

use fxscope_calendar::{BufferPool, Cycle};
use fxscope_machine::spec::LoadStore;
use fxscope_memory::LoadStorePipes;

use super::rules::Writing;
use super::store_queue::Span;

/// Entries with data of committed stores.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct WriteBuffer {
    entries: BufferPool,
    /// The youngest entry: its aligned block, the block's size, and when it is written.
    youngest: (u64, u8, Cycle),
    /// When the last of all data that has come here is written.
    last: Cycle,
    store_write: Cycle,
    /// How long an entry with room waits for a store to merge.
    merge_wait: Cycle,
    /// The cycle in which a store moved here last, the number of stores in that cycle, and the most.
    moved: (Cycle, u32),
    moves: u32,
}

/// How a store passed the write buffer.
#[derive(Clone, Copy)]
pub struct Written {
    /// When the last of its data left the store port.
    pub entered: Cycle,
    /// When its first and its last write (ST2) ran.
    pub first: Cycle,
    /// See `first`.
    pub last: Cycle,
}

impl WriteBuffer {
    /// An empty buffer.
    #[must_use]
    pub fn new(spec: &LoadStore) -> WriteBuffer {
        WriteBuffer {
            entries: BufferPool::new(spec.write_buffer as usize),
            youngest: (u64::MAX, 0, 0),
            last: 0,
            store_write: spec.store_write,
            merge_wait: spec.merge_wait,
            moved: (0, 0),
            moves: spec.write_buffer_moves,
        }
    }

    /// A store moves to the buffer at `moved`, and its bytes are written once their line has arrived at `line`. They
    /// are split into the blocks of `writing`, and merge with the youngest entry if it holds the same block and is not
    /// written yet. A new entry with room behind these bytes waits for others to merge, unless its place is needed: it
    /// counts as free from then on, but its write stays where it is.
    #[inline(always)]
    pub fn write(
        &mut self,
        bytes: Span,
        writing: Writing,
        moved: Cycle,
        line: Cycle,
        pipes: &mut LoadStorePipes,
    ) -> Written {
        let ready = (moved + self.store_write).max(line);
        let mut written = Written { entered: moved, first: Cycle::MAX, last: 0 };
        for block in bytes.blocks(writing.shift) {
            let (held, shift, leaves) = self.youngest;
            let joins = writing.merges && held == block && shift == writing.shift && leaves >= ready;
            let at = if joins {
                leaves
            } else {
                let entry = self.entries.first_free(written.entered);
                written.entered = entry.at;
                let has_room = writing.merges && bytes.end < (block + 1) << writing.shift;
                let wait = if has_room { self.merge_wait } else { 0 };
                let at = pipes.store_write((ready + wait).max(entry.at), writing.wide);
                let could_leave = ready.max(entry.at);
                self.entries.hold(entry, entry.at, (at + 1 - wait).max(could_leave + 1));
                self.youngest = (block, writing.shift, at);
                at
            };
            written.first = written.first.min(at);
            written.last = written.last.max(at);
        }
        self.last = self.last.max(written.last);
        self.moved = if written.entered > moved { (written.entered, 1) } else { self.moved };
        written
    }

    /// When the data of a store that committed at `t` move from its port: in order, several per cycle.
    #[inline(always)]
    pub fn move_in(&mut self, t: Cycle) -> Cycle {
        let (last, many) = self.moved;
        self.moved = match t > last {
            true => (t, 1),
            false if many < self.moves => (last, many + 1),
            false => (last + 1, 1),
        };
        self.moved.0
    }

    /// A `DC ZVA` that committed at `t` passes through the buffer after all older stores. `sent` sends it to L2 and
    /// returns when L2 has zeroed the line. Returns when it left the store port.
    pub fn zero(&mut self, t: Cycle, sent: impl FnOnce(Cycle) -> Cycle) -> Cycle {
        let entry = self.entries.first_free(t);
        let zeroed = sent(entry.at.max(t + self.store_write).max(self.last + 1));
        self.entries.hold(entry, entry.at, zeroed);
        entry.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_move_in_order_and_at_most_the_given_number_per_cycle() {
        let mut spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        spec.tables.load_store.write_buffer_moves = 2;
        let mut buffer = WriteBuffer::new(&spec.load_store);
        let moved = [10, 10, 10, 10, 10, 20, 15, 15].map(|committed| buffer.move_in(committed));
        assert_eq!(moved, [10, 10, 11, 11, 12, 20, 20, 21]);
    }

    const NARROW: Writing = Writing { shift: 4, merges: true, wide: false };
    const WIDE: Writing = Writing { shift: 6, merges: true, wide: true };
    const ALONE: Writing = Writing { shift: 6, merges: false, wide: false };

    fn buffer(entries: u32) -> WriteBuffer {
        let mut spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        (spec.tables.load_store.write_buffer, spec.tables.load_store.store_write) = (entries, 5);
        spec.tables.load_store.write_buffer_moves = 2;
        spec.tables.load_store.merge_wait = 0;
        WriteBuffer::new(&spec.load_store)
    }

    /// First and last write of `bytes` bytes at `start`.
    fn write(
        buffer: &mut WriteBuffer,
        pipes: &mut LoadStorePipes,
        at: (u64, u64),
        writing: Writing,
        moved: Cycle,
        line: Cycle,
    ) -> [Cycle; 2] {
        let written = buffer.write(Span::of(at.0, at.1), writing, moved, line, pipes);
        assert!(written.entered >= moved);
        [written.first, written.last]
    }

    #[test]
    fn stores_are_written_block_by_block_when_their_line_is_there_and_merge_until_then() {
        let (mut buffer, mut pipes) = (buffer(20), LoadStorePipes::default());
        let mut write = |at, writing, moved, line| write(&mut buffer, &mut pipes, at, writing, moved, line);
        assert_eq!(write((0, 8), NARROW, 100, 0), [105, 105]);
        assert_eq!(write((8, 8), NARROW, 100, 0), [105, 105], "merged");
        assert_eq!(write((16, 8), NARROW, 100, 0), [106, 106], "another block");
        assert_eq!(write((0, 8), NARROW, 100, 0), [107, 107], "not the youngest any more");
        assert_eq!(write((0, 8), WIDE, 100, 0), [108, 108], "another kind of block");
        assert_eq!(write((8, 8), ALONE, 100, 0), [109, 109], "it merges with nothing");
        assert_eq!(write((16, 8), WIDE, 104, 0), [109, 109], "but others merge with it, as late as in its cycle");
        assert_eq!(write((16, 8), WIDE, 105, 0), [110, 110], "and not behind");
        assert_eq!(write((60, 8), WIDE, 200, 0), [205, 206], "two blocks");
        assert_eq!(write((128, 8), NARROW, 201, 300), [300, 300]);
        assert_eq!(write((136, 8), NARROW, 290, 0), [300, 300], "merged with one that waits");
        assert_eq!(pipes.busy(), [4, 9], "wide writes count in both pipes");
    }

    #[test]
    fn an_entry_with_room_behind_its_bytes_waits_for_stores_to_merge() {
        let (mut buffer, mut pipes) = (buffer(20), LoadStorePipes::default());
        buffer.merge_wait = 6;
        let mut write = |at, writing, moved, line| write(&mut buffer, &mut pipes, at, writing, moved, line);
        assert_eq!(write((0, 4), NARROW, 100, 0), [111, 111], "5 cycles to W5 and 6 of waiting");
        for (place, moved) in [(4, 102), (8, 104), (12, 106)] {
            assert_eq!(write((place, 4), NARROW, moved, 0), [111, 111], "merged");
        }
        assert_eq!(write((28, 4), NARROW, 110, 0), [115, 115], "nothing can follow");
        assert_eq!(write((32, 8), NARROW, 120, 300), [306, 306], "until six cycles after its line has come");
        assert_eq!(write((64, 48), WIDE, 400, 0), [411, 411], "six lanes of eight");
        assert_eq!(write((128, 64), WIDE, 420, 0), [425, 425], "a whole vector");
        assert_eq!(write((192, 8), ALONE, 440, 0), [445, 445], "nothing merges with it");
    }

    #[test]
    fn a_waiting_entry_gives_its_place_up_when_it_could_have_been_written_and_not_before_it_had_it() {
        let (mut buffer, mut pipes) = (buffer(1), LoadStorePipes::default());
        buffer.merge_wait = 6;
        let mut write = |start, moved, line| {
            let written = buffer.write(Span::of(start, 4), NARROW, moved, line, &mut pipes);
            (written.entered, written.first)
        };
        assert_eq!(write(0, 100, 0), (100, 111));
        assert_eq!(write(16, 101, 0), (106, 112), "in the cycle after that in which the first could be written");
        assert_eq!(write(32, 102, 200), (107, 206));
        assert_eq!(write(48, 103, 0), (201, 201), "when the line of the one before has come; its wait is over by then");
        assert_eq!(write(64, 104, 0), (202, 202), "the one before had its place from 201 on");
    }

    #[test]
    fn a_store_leaves_its_port_when_an_entry_is_free_and_those_behind_it_not_before() {
        let (mut buffer, mut pipes) = (buffer(2), LoadStorePipes::default());
        for block in 0..2 {
            assert_eq!(buffer.write(Span::of(64 * block, 8), ALONE, 100, 1_000, &mut pipes).entered, 100);
        }
        let written = buffer.write(Span::of(128, 8), ALONE, 100, 0, &mut pipes);
        assert_eq!(
            (written.entered, written.first),
            (1_001, 1_002),
            "the first entry is written at 1,000, the second next"
        );
        assert_eq!([buffer.move_in(101), buffer.move_in(101), buffer.move_in(1_003)], [1_001, 1_002, 1_003]);
    }

    #[test]
    fn zeroing_is_sent_when_older_stores_are_written_and_keeps_its_entry_until_it_is_done() {
        let (mut buffer, mut pipes) = (buffer(1), LoadStorePipes::default());
        let mut sent = 0;
        let mut zero = |buffer: &mut WriteBuffer, t, done| {
            let entered = buffer.zero(t, |t| {
                sent = t;
                done
            });
            (entered, sent)
        };
        assert_eq!(zero(&mut buffer, 100, 130), (100, 105), "nothing is before it");
        assert_eq!(zero(&mut buffer, 120, 150), (130, 130), "the entry is free");
        buffer.write(Span::of(0, 8), NARROW, 200, 0, &mut pipes);
        assert_eq!(zero(&mut buffer, 199, 250), (206, 206), "the store is written at 205");
    }
}
