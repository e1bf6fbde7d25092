//! Tables of `machine.toml` about caches, memory, translation and prefetch.

use super::{ENTRIES, GIB, GRANULES, KIB, MAX_WAYS, MIB, PAGE, PrefetchPolicy, Replacement};
use crate::schema::Rule::{OneOf, Power, Range, Real};
use crate::schema::table;

table! {
    /// A cache.
    Cache {
        /// Capacity.
        bytes: u64 => Range(1024, GIB); unit "bytes",
        /// Associativity.
        ways: u32 => Range(1, MAX_WAYS); unit "ways",
        /// Ways that programs cannot use. Those of L2 are kept for assistant cores, in the CMGs that have one
        /// (`topology.assistant_cmgs`).
        reserved_ways: u32 => Range(0, MAX_WAYS); unit "ways",
        /// Line size.
        line_bytes: u32 => Power(64, 4 * KIB); unit "bytes",
        /// Outstanding misses (move-in buffers).
        miss_buffers: u32 => ENTRIES; unit "entries",
        /// Which line of a full set leaves for a new one.
        replacement: Replacement,
    }
}

table! {
    /// How the L2 cache hashes set numbers: fields of the physical address change the highest bits of the number that the
    /// address has without a hash.
    L2Hash {
        /// Bits of the set number that are hashed, of as many as it has; 0: none.
        bits: u32 => Range(0, 16); unit "bits",
        /// The lowest address bit of each field, as many bits wide. The exclusive or of all fields changes the set number.
        fields: Vec<u64> => Range(6, 57); unit "address bits",
    }
}

table! {
    /// Timing of the L2 cache and of the path between L1 and L2.
    L2Timing {
        /// Load-to-use of an integer load that hits L2, core nearest to the cache.
        hit_nearest: u64 => Range(1, 10_000); unit "cycles",
        /// The same, farthest core.
        hit_farthest: u64 => Range(1, 10_000); unit "cycles",
        /// Cycles from an L1 miss to the start of the L2 pipeline.
        request: u64 => Range(0, 1000); unit "cycles",
        /// Cycles between two requests of one core (demand or prefetch).
        request_period: f64 => Real(0.1, 1000.0); unit "cycles",
        /// Cycles from a tag miss in L2 to the request at the memory controller.
        miss_detect: u64 => Range(0, 1000); unit "cycles",
        /// Bytes a cycle from L2 into one L1D.
        fill_bytes_per_cycle: u32 => Range(1, 4 * KIB); unit "bytes",
        /// Bytes a cycle from one L1D to L2.
        writeback_bytes_per_cycle: u32 => Range(1, 4 * KIB); unit "bytes",
        /// Cycles of that path in which L1D tells L2 of a clean line given up.
        release: u64 => Range(0, 1000); unit "cycles",
        /// Banks; each serves one line a cycle.
        banks: u32 => Power(1, 64); unit "banks",
    }
}

table! {
    /// Local memory: main memory, behind a memory-side cache if there is one.
    MemoryTiming {
        /// Load-to-use of an integer load from local memory, core nearest to the controller, with the way through a
        /// memory-side cache.
        latency_nearest: u64 => Range(1, 10_000); unit "cycles",
        /// The same, farthest core.
        latency_farthest: u64 => Range(1, 10_000); unit "cycles",
        /// What every read takes longer than that, ns: 0 for the machine itself, more for slower memory in its place.
        added_ns: f64 => Real(0.0, 100_000.0); unit "ns",
        /// Bytes a second the device delivers at most, reads and writes together.
        peak_bytes_per_second: u64 => Range(1_000_000_000, 100_000_000_000_000); unit "bytes/s",
        /// Share of the peak that a stream of reads reaches, percent.
        read_efficiency: f64 => Real(1.0, 100.0); unit "percent",
        /// Time a line's write takes on the channel, as a multiple of a read's (turn-around included).
        write_cost: f64 => Real(0.0, 16.0); unit "reads",
    }
}

table! {
    /// A direct-mapped cache in front of the main memory of each CMG, with a memory of its own.
    MemorySideCache {
        /// Its size; 0: there is none.
        bytes: u64 => Range(0, 64 * GIB); unit "bytes",
        /// Load-to-use of an integer load that hits it, core nearest to it.
        hit_nearest: u64 => Range(0, 10_000); unit "cycles",
        /// The same, farthest core.
        hit_farthest: u64 => Range(0, 10_000); unit "cycles",
        /// Cycles from a request here to the request at main memory, when the line is not here.
        miss_detect: u64 => Range(0, 10_000); unit "cycles",
        /// Bytes a second that it delivers at most, reads and writes together.
        peak_bytes_per_second: u64 => Range(1_000_000_000, 100_000_000_000_000); unit "bytes/s",
        /// Share of the peak that a stream of reads reaches, percent.
        read_efficiency: f64 => Real(1.0, 100.0); unit "percent",
        /// Time a line's write takes, as a multiple of a read's.
        write_cost: f64 => Real(0.0, 16.0); unit "reads",
    }
}

table! {
    /// The ring between the CMGs.
    Ring {
        /// CMGs stand in rows of so many; the ring goes through the rows to and fro.
        columns: u32 => Range(1, 16); unit "CMGs",
        /// Cycles from one CMG to the next.
        hop: u64 => Range(0, 10_000); unit "cycles",
        /// Bytes a cycle of each link, in each direction, and of each CMG's port to the ring, in and out together.
        bytes_per_cycle: u32 => Range(1, 4 * KIB); unit "bytes",
        /// Share of that width that lines get at a CMG's port, percent.
        port_efficiency: f64 => Real(1.0, 100.0); unit "percent",
    }
}

table! {
    /// Translation.
    Tlb {
        /// L1 entries, data and instruction each, fully associative.
        l1_entries: u32 => Range(1, 256); unit "entries",
        /// A new page takes the place of the one of L1 that was not used for longest, not of the one that came first.
        l1_lru: bool,
        /// L2 entries, data and instruction each.
        l2_entries: u32 => Range(1, MIB); unit "entries",
        /// L2 associativity.
        l2_ways: u32 => Range(1, 4096); unit "ways",
        /// Cycles of an L1 miss that hits L2.
        l2_hit: u64 => Range(0, 1000); unit "cycles",
        /// Sizes of pages that L2 has alone, beside L1, which has all others. Without any, L2 stands behind L1 and both have
        /// pages of all sizes.
        l2_beside: Vec<u64> => PAGE; unit "bytes",
        /// Cycles of a miss of both that software handles in a trap. 0: hardware walks the tables.
        miss_trap: u64 => Range(0, 1_000_000); unit "cycles",
        /// Bytes of a page-table granule; the first that has a page's size is taken.
        granules: [u64; 2] => OneOf(GRANULES); unit "bytes",
        /// Descriptors of each granule's contiguous groups.
        contiguous: [u64; 2] => Power(1, 1024); unit "descriptors",
        /// Bytes of a descriptor.
        descriptor_bytes: u32 => Power(4, 64); unit "bytes",
        /// Entries of the translation table cache, which data and instructions share, LRU.
        table_cache: u32 => Range(1, 256); unit "entries",
        /// Cycles of a table walk besides its reads of descriptors.
        walk_extra: u64 => Range(0, 10_000); unit "cycles",
        /// An access without active elements looks up its page, too, and waits for what comes of it.
        inactive_lookup: bool,
        /// Cycles that the system takes, besides the walk, for such an access whose page is not there. 0: it goes on.
        absent_trap: u64 => Range(0, 1_000_000); unit "cycles",
        /// Walks or traps at a time, of data and instructions together.
        walkers: u32 => Range(1, 64); unit "walks",
    }
}

table! {
    /// Page sizes by segment.
    Pages {
        /// Sizes of pages that there are.
        sizes: Vec<u64> => PAGE; unit "bytes"; inert "it limits what other keys and options may ask for",
        /// Pages that the kernel gives without the large-page library.
        normal: u64 => PAGE; unit "bytes",
        /// Pages that the large-page library takes.
        large: u64 => PAGE; unit "bytes",
        /// Text and read-only data.
        text: u64 => PAGE; unit "bytes",
        /// Initialised data.
        data: u64 => PAGE; unit "bytes",
        /// Zero-initialised data.
        bss: u64 => PAGE; unit "bytes",
        /// Heap.
        heap: u64 => PAGE; unit "bytes",
        /// Stack of the first thread.
        stack: u64 => PAGE; unit "bytes",
        /// Stacks of other threads.
        thread_stack: u64 => PAGE; unit "bytes",
        /// Private anonymous mappings.
        mmap: u64 => PAGE; unit "bytes",
        /// Shared anonymous mappings.
        shared: u64 => PAGE; unit "bytes",
    }
}

table! {
    /// What the operating system's work on pages costs.
    PageCosts {
        /// Taking a page because it is touched, besides clearing it, ns.
        fault_ns: u64 => Range(0, 1_000_000_000); unit "ns",
        /// Taking pages and clearing them, bytes a second.
        clear_bytes_per_second: u64 => Range(1_000_000, 10_000_000_000_000); unit "bytes/s",
        /// Giving pages back, bytes a second.
        free_bytes_per_second: u64 => Range(1_000_000, 10_000_000_000_000); unit "bytes/s",
        /// Copying pages to another node, besides a fault for each, bytes a second.
        move_bytes_per_second: u64 => Range(1_000_000, 10_000_000_000_000); unit "bytes/s",
    }
}

table! {
    /// The hardware prefetcher.
    Prefetch {
        /// How it decides what to prefetch.
        policy: PrefetchPolicy,
        /// Prefetch into L1 on.
        l1: bool,
        /// Prefetch into L2 on.
        l2: bool,
        /// Entries of the prefetch queue.
        queue: u32 => Range(1, 256); unit "entries"; option of policy "stream",
        /// Largest distance of L1 prefetches, lines.
        l1_lines: u32 => Range(0, 15); unit "lines"; option of policy "stream",
        /// Largest distance of L2 prefetches, lines.
        l2_lines: u32 => Range(0, 60); unit "lines"; option of policy "stream",
        /// Lines requested for each queue hit while the distance grows.
        ramp_lines: u32 => Range(1, 16); unit "lines"; option of policy "stream",
        /// Consecutive L2 hits of L2 prefetches after which L2 prefetching of the stream stops.
        l2_stop_hits: u32 => Range(0, 1_000_000); unit "hits"; option of policy "stream",
        /// Bits 63:60 of a pointer steer prefetches for its accesses.
        tagged_pointers: bool,
        /// Prefetch ports: prefetches into L2 of one core that L2 has not taken yet.
        ports: u32 => Range(1, 1024); unit "ports",
    }
}

table! {
    /// Energy of a core, of a CMG's L2 cache and of its memory, and what a count of the PMU stands for.
    Energy {
        /// Energy of a count of EA_CORE, nJ.
        core_count_nj: u64 => Range(1, 1_000_000); unit "nJ",
        /// … of EA_L2.
        l2_count_nj: u64 => Range(1, 1_000_000); unit "nJ",
        /// … of EA_MEMORY.
        memory_count_nj: u64 => Range(1, 1_000_000); unit "nJ",
        /// Energy of a core in each cycle, whatever it does, pJ.
        core_cycle_pj: u64 => Range(0, 1_000_000); unit "pJ",
        /// Energy of an operation of FLA or FLB on all elements, pJ; on some of them the share.
        vector_operation_pj: u64 => Range(0, 1_000_000); unit "pJ",
        /// Energy of a cycle in which a load/store pipe works, pJ.
        load_store_cycle_pj: u64 => Range(0, 1_000_000); unit "pJ",
        /// Energy of an L2 cache in each cycle of the core clock, whatever it does, pJ.
        l2_cycle_pj: u64 => Range(0, 1_000_000); unit "pJ",
        /// Energy of a cycle in which an L2 pipeline works, pJ.
        l2_pipe_cycle_pj: u64 => Range(0, 1_000_000); unit "pJ",
        /// Power of a CMG's memory, whatever it does, mW.
        memory_mw: u64 => Range(0, 1_000_000); unit "mW",
        /// Energy of a line read from memory or written to it, pJ.
        memory_line_pj: u64 => Range(0, 1_000_000); unit "pJ",
    }
}

table! {
    /// The hardware barrier of a CMG.
    HardwareBarrier {
        /// Barrier blades of a CMG.
        blades: u32 => Range(1, 256); unit "blades",
        /// Most cores of a CMG: bits of a blade's mask.
        cores: u32 => Range(2, 16); unit "cores",
        /// Cycles from the last write of a round until the cores that take part see it and get their events.
        latency: u64 => Range(0, 1_000_000); unit "cycles",
    }
}

table! {
    /// The sector cache, as the kernel sets it up before a program starts.
    SectorCache {
        /// Sectors are in use, and user code may use their registers.
        enabled: bool,
        /// Bits 57:56 of a pointer choose the sector of its accesses; otherwise all have the default sector.
        tagged_pointers: bool,
        /// A line found by an access of another sector moves to that sector (0) or stays in its own (1).
        mode: u32 => Range(0, 1),
        /// Which pair of L2's sectors the cores use: 0 and 1 (0), or 2 and 3 (1).
        assign: u32 => Range(0, 1); inert "all cores of a machine use the same pair, and the pairs are alike",
        /// Sector of instructions, and of data whose pointers do not choose one.
        default_sector: u32 => Range(0, 3),
        /// Most ways of each sector of L1D at the start. All 0: no sector has a limit.
        l1_ways: [u64; 4] => Range(0, 7); unit "ways",
        /// Most ways of the cores' two sectors of L2 at the start. All 0: neither has a limit.
        l2_ways: [u64; 2] => Range(0, 31); unit "ways",
    }
}
