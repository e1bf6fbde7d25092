//! Tables of `machine.toml` about caches, memory, translation and prefetch.

use super::{
    ENTRIES, GIB, GRANULES, KIB, MAX_WAYS, MIB, PAGE, PrefetchPolicy, Replacement, StreamReplacement, TlbReplacement,
};
use crate::schema::Rule::{OneOf, Power, Range, Real};
use crate::schema::table;

table! {
    /// A cache.
    Cache {
        /// Capacity.
        bytes: u64 => Range(1024, GIB); unit "bytes",
        /// Associativity.
        ways: u32 => Range(1, MAX_WAYS); unit "ways",
        /// Ways that programs cannot use. Those of L2 are reserved for assistant cores, in the CMGs that have one
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
    /// The hash of L2's set numbers: fields of the physical address are combined with the highest bits of the number that the
    /// address has without a hash.
    L2Hash {
        /// Bits of the set number that are hashed; 0: none.
        bits: u32 => Range(0, 16); unit "bits",
        /// The lowest address bit of each field, which has `bits` bits. The exclusive or of all fields is combined with the set
        /// number.
        fields: Vec<u64> => Range(6, 57); unit "address bits",
    }
}

table! {
    /// Timing of the L2 cache and of the path between L1 and L2.
    L2Timing {
        /// Load-to-use latency of an integer load that hits L2, for the core nearest to the cache.
        hit_nearest: u64 => Range(1, 10_000); unit "cycles",
        /// The same for the farthest core.
        hit_farthest: u64 => Range(1, 10_000); unit "cycles",
        /// Cycles from an L1 miss to the start of the L2 pipeline.
        request: u64 => Range(0, 1000); unit "cycles",
        /// Cycles between two requests of one core (demand or prefetch).
        request_period: f64 => Real(0.1, 1000.0); unit "cycles",
        /// Cycles from a tag miss in L2 to the request at the memory controller, and to the next try when no buffer is free.
        miss_detect: u64 => Range(0, 1000); unit "cycles",
        /// Bytes per cycle from L2 to one L1D.
        fill_bytes_per_cycle: u32 => Range(1, 4 * KIB); unit "bytes",
        /// Bytes per cycle from one L1D to L2.
        writeback_bytes_per_cycle: u32 => Range(1, 4 * KIB); unit "bytes",
        /// Cycles of that path for the notice by which L1D informs L2 of the eviction of a clean line.
        release: u64 => Range(0, 1000); unit "cycles",
        /// Cycles from a written-back line being in L2 to its move-out buffer in L1D being free.
        acknowledge: u64 => Range(0, 10_000); unit "cycles",
        /// Cycles that L2 takes for `DC ZVA` beyond those of a hit.
        zero: u64 => Range(0, 10_000); unit "cycles",
        /// Banks; each serves one line per cycle.
        banks: u32 => Power(1, 64); unit "banks",
    }
}

table! {
    /// Local memory: main memory, behind a memory-side cache if there is one.
    MemoryTiming {
        /// Load-to-use latency of an integer load from local memory, for the core nearest to the controller, including the path
        /// through a memory-side cache.
        latency_nearest: u64 => Range(1, 10_000); unit "cycles",
        /// The same for the farthest core.
        latency_farthest: u64 => Range(1, 10_000); unit "cycles",
        /// Additional latency of every read, ns: 0 for the machine itself, more for slower memory instead of its own.
        added_ns: f64 => Real(0.0, 100_000.0); unit "ns",
        /// Peak bandwidth of the device, reads and writes together, bytes per second.
        peak_bytes_per_second: u64 => Range(1_000_000_000, 100_000_000_000_000); unit "bytes/s",
        /// Share of the peak that a stream of reads reaches, percent.
        read_efficiency: f64 => Real(1.0, 100.0); unit "percent",
        /// Time of a line's write on the channel, as a multiple of a read's (turn-around included).
        write_cost: f64 => Real(0.0, 16.0); unit "reads",
    }
}

table! {
    /// A direct-mapped cache in front of the main memory of each CMG, with its own memory.
    MemorySideCache {
        /// Its size; 0: no such cache.
        bytes: u64 => Range(0, 64 * GIB); unit "bytes",
        /// Load-to-use latency of an integer load that hits it, for the nearest core.
        hit_nearest: u64 => Range(0, 10_000); unit "cycles",
        /// The same for the farthest core.
        hit_farthest: u64 => Range(0, 10_000); unit "cycles",
        /// Cycles from a request to this cache to the request to main memory, on a miss.
        miss_detect: u64 => Range(0, 10_000); unit "cycles",
        /// Its peak bandwidth, reads and writes together, bytes per second.
        peak_bytes_per_second: u64 => Range(1_000_000_000, 100_000_000_000_000); unit "bytes/s",
        /// Share of the peak that a stream of reads reaches, percent.
        read_efficiency: f64 => Real(1.0, 100.0); unit "percent",
        /// Time of a line's write, as a multiple of a read's.
        write_cost: f64 => Real(0.0, 16.0); unit "reads",
    }
}

table! {
    /// The ring between the CMGs.
    Ring {
        /// CMGs in a row. The ring runs through the rows in alternating directions.
        columns: u32 => Range(1, 16); unit "CMGs",
        /// Cycles from one CMG to another of its row.
        hop: u64 => Range(0, 10_000); unit "cycles",
        /// Cycles from one CMG to any of another row.
        row_hop: u64 => Range(0, 10_000); unit "cycles",
        /// Bytes per cycle of each link, in each direction, and of each CMG's two ports to the ring, both directions together:
        /// one for what it reads and writes of others, one for what others read and write of it.
        bytes_per_cycle: u32 => Range(1, 4 * KIB); unit "bytes",
        /// Share of that width that is available to lines at a CMG's port, percent.
        port_efficiency: f64 => Real(1.0, 100.0); unit "percent",
        /// Cycles that the port for others loses when a line of one CMG follows a line of another.
        turnaround: u64 => Range(0, 10_000); unit "cycles",
    }
}

table! {
    /// Translation.
    Tlb {
        /// L1 entries, data and instruction each, fully associative.
        l1_entries: u32 => Range(1, 256); unit "entries",
        /// Which page leaves a full L1 for a new one.
        l1_replacement: TlbReplacement,
        /// L2 entries, data and instruction each.
        l2_entries: u32 => Range(1, MIB); unit "entries",
        /// L2 associativity.
        l2_ways: u32 => Range(1, 4096); unit "ways",
        /// Cycles for an L1 miss that hits L2.
        l2_hit: u64 => Range(0, 1000); unit "cycles",
        /// Sizes of pages that only L2 holds; L1 holds all others, and both are searched at once. If the list is empty, L2 is
        /// the second level behind L1, and both hold pages of all sizes.
        l2_only_sizes: Vec<u64> => PAGE; unit "bytes",
        /// Cycles of the trap in which software handles a miss of both. 0: hardware walks the tables.
        miss_trap: u64 => Range(0, 1_000_000); unit "cycles",
        /// Bytes of each page-table granule. The first one that supports the size of a page is used.
        granules: [u64; 2] => OneOf(GRANULES); unit "bytes",
        /// Descriptors of each granule's contiguous groups.
        contiguous: [u64; 2] => Power(1, 1024); unit "descriptors",
        /// Bytes of a descriptor.
        descriptor_bytes: u32 => Power(4, 64); unit "bytes",
        /// Entries of the translation table cache, which data and instructions share, LRU.
        table_cache: u32 => Range(1, 256); unit "entries",
        /// Cycles of a table walk in addition to its reads of descriptors.
        walk_extra: u64 => Range(0, 10_000); unit "cycles",
        /// An access without active elements looks up its page, too, and waits for the result.
        inactive_lookup: bool,
        /// Cycles of the operating system, in addition to the walk, for such an access to a page that does not exist. 0: the
        /// access continues without it.
        absent_trap: u64 => Range(0, 1_000_000); unit "cycles",
        /// Walks or traps in progress at a time, of data and instructions together.
        walkers: u32 => Range(1, 64); unit "walks",
        /// Translations that miss take no time and stop no prefetch; misses are counted as usual. A run with it shows what
        /// translation costs a program.
        free_misses: bool,
    }
}

table! {
    /// Page sizes by segment.
    Pages {
        /// Page sizes that the machine supports.
        sizes: Vec<u64> => PAGE; unit "bytes"; inert "it limits the values of other keys and options",
        /// Pages that the kernel uses without the large-page library.
        normal: u64 => PAGE; unit "bytes",
        /// Pages that the large-page library uses.
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
    /// Costs of the operating system's work on pages.
    PageCosts {
        /// A page fault, without clearing the page, ns.
        fault_ns: u64 => Range(0, 1_000_000_000); unit "ns",
        /// Allocating and clearing pages, bytes per second.
        clear_bytes_per_second: u64 => Range(1_000_000, 10_000_000_000_000); unit "bytes/s",
        /// Freeing pages, bytes per second.
        free_bytes_per_second: u64 => Range(1_000_000, 10_000_000_000_000); unit "bytes/s",
        /// A thread that unmaps memory has its process's address space alone until the pages are freed; others that allocate or
        /// unmap wait.
        unmap_alone: bool,
        /// Copying pages to another node, without the fault of each page, bytes per second.
        move_bytes_per_second: u64 => Range(1_000_000, 10_000_000_000_000); unit "bytes/s",
        /// Making a page inaccessible in a scan for hot pages, ns.
        protect_page_ns: u64 => Range(0, 1_000_000); unit "ns",
        /// Removing translations from the TLBs of all cores, once for many pages, ns.
        shootdown_ns: u64 => Range(0, 1_000_000); unit "ns",
    }
}

table! {
    /// The hardware prefetcher.
    Prefetch {
        /// How it decides what to prefetch.
        policy: PrefetchPolicy,
        /// Hardware prefetch into L1 is on.
        l1: bool,
        /// Hardware prefetch into L2 is on.
        l2: bool,
        /// Entries of the prefetch queue.
        queue: u32 => Range(1, 256); unit "entries"; option of policy "stream",
        /// Which stream leaves a full queue for a new one.
        replacement: StreamReplacement,
        /// Largest distance of L1 prefetches, lines.
        l1_lines: u32 => Range(0, 15); unit "lines"; option of policy "stream",
        /// Largest distance of L2 prefetches, lines.
        l2_lines: u32 => Range(0, 60); unit "lines"; option of policy "stream",
        /// Lines that each hit of the queue requests while the distance grows.
        ramp_lines: u32 => Range(1, 16); unit "lines"; option of policy "stream",
        /// Consecutive L2 hits of L2 prefetches after which L2 prefetching of the stream stops.
        l2_stop_hits: u32 => Range(0, 1_000_000); unit "hits"; option of policy "stream",
        /// Bits 63:60 of a pointer control the prefetches of its accesses.
        tagged_pointers: bool,
        /// Prefetch ports: prefetches of one core into L2 that L2 has not accepted yet.
        ports: u32 => Range(1, 1024); unit "ports",
    }
}

table! {
    /// Energy of a core, of a CMG's L2 cache and of its memory, and the energy that a count of the PMU represents.
    Energy {
        /// Energy of a count of EA_CORE, nJ.
        core_count_nj: u64 => Range(1, 1_000_000); unit "nJ",
        /// … of EA_L2.
        l2_count_nj: u64 => Range(1, 1_000_000); unit "nJ",
        /// … of EA_MEMORY.
        memory_count_nj: u64 => Range(1, 1_000_000); unit "nJ",
        /// Energy of a core per cycle, independent of its activity, pJ.
        core_cycle_pj: u64 => Range(0, 1_000_000); unit "pJ",
        /// Energy of an operation of FLA or FLB on all elements, pJ; in proportion for fewer elements.
        vector_operation_pj: u64 => Range(0, 1_000_000); unit "pJ",
        /// Energy of a cycle in which a load/store pipe is busy, pJ.
        load_store_cycle_pj: u64 => Range(0, 1_000_000); unit "pJ",
        /// Energy of an L2 cache per cycle of the core clock, independent of its activity, pJ.
        l2_cycle_pj: u64 => Range(0, 1_000_000); unit "pJ",
        /// Energy of a cycle in which an L2 pipeline is busy, pJ.
        l2_pipe_cycle_pj: u64 => Range(0, 1_000_000); unit "pJ",
        /// Power of a CMG's memory, independent of its activity, mW.
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
        /// Cycles from the last arrival at a barrier until the participating cores see it and receive their events.
        latency: u64 => Range(0, 1_000_000); unit "cycles",
    }
}

table! {
    /// The sector cache, as the kernel configures it before a program starts.
    SectorCache {
        /// Sectors are in use, and user code may access their registers.
        enabled: bool,
        /// Bits 57:56 of a pointer select the sector of its accesses; otherwise all have the default sector.
        tagged_pointers: bool,
        /// A line that an access of another sector hits moves to that sector (0) or stays in its own (1).
        mode: u32 => Range(0, 1),
        /// Which pair of L2's sectors the cores use: 0 and 1 (0), or 2 and 3 (1).
        assign: u32 => Range(0, 1); inert "all cores of a machine use the same pair, and the pairs are alike",
        /// Sector of instructions, and of data whose pointers do not select one.
        default_sector: u32 => Range(0, 3),
        /// Initial limit of each sector of L1D. All 0: no sector has a limit.
        l1_ways: [u64; 4] => Range(0, 7); unit "ways",
        /// Initial limits of the two sectors of L2 that the cores use. All 0: neither has a limit.
        l2_ways: [u64; 2] => Range(0, 31); unit "ways",
    }
}
