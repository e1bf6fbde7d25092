//! What the model counts, named after the PMU events that count it.
//!
//! Counting is always on: `signals.add(Signal::CpuCycles, n)` is an array increment. Counts that follow from static properties of
//! instructions (instruction mix, floating-point operations) are derived from the execution counts of blocks.

macro_rules! signals {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        /// A quantity the model counts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Signal {
            $($(#[$doc])* $variant,)+
        }

        impl Signal {
            /// All signals, in order.
            pub const ALL: &[Signal] = &[$(Signal::$variant,)+];
            /// Number of signals.
            pub const COUNT: usize = Signal::ALL.len();

            /// Returns the name used in counters, reports and documents.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Signal::$variant => $name,)+
                }
            }
        }
    };
}

signals! {
    // ---- cycles and commit ----
    /// Core clock cycles.
    CpuCycles = "CPU_CYCLES",
    /// Instructions executed.
    InstRetired = "INST_RETIRED",
    /// Instructions executed, without MOVPRFX.
    EffectiveInst = "EFFECTIVE_INST_SPEC",
    /// Micro-operations executed.
    Uop = "UOP_SPEC",
    /// Cycles in which no instruction commits.
    Commit0 = "0INST_COMMIT",
    /// Cycles in which one instruction commits.
    Commit1 = "1INST_COMMIT",
    /// Cycles in which two instructions commit.
    Commit2 = "2INST_COMMIT",
    /// Cycles in which three instructions commit.
    Commit3 = "3INST_COMMIT",
    /// Cycles in which four instructions commit.
    Commit4 = "4INST_COMMIT",
    /// No commit: the oldest operation, a memory access, is not complete.
    LdCompWait = "LD_COMP_WAIT",
    /// … an integer load.
    LdCompWaitEx = "LD_COMP_WAIT_EX",
    /// … and waits for memory (it missed the L2 cache).
    LdCompWaitL2Miss = "LD_COMP_WAIT_L2_MISS",
    /// … an integer load.
    LdCompWaitL2MissEx = "LD_COMP_WAIT_L2_MISS_EX",
    /// … and waits for the L2 cache (it missed the L1D cache).
    LdCompWaitL1Miss = "LD_COMP_WAIT_L1_MISS",
    /// … an integer load.
    LdCompWaitL1MissEx = "LD_COMP_WAIT_L1_MISS_EX",
    /// … because no prefetch port is free.
    LdCompWaitPfpBusy = "LD_COMP_WAIT_PFP_BUSY",
    /// … an integer load.
    LdCompWaitPfpBusyEx = "LD_COMP_WAIT_PFP_BUSY_EX",
    /// … a software prefetch.
    LdCompWaitPfpBusySwpf = "LD_COMP_WAIT_PFP_BUSY_SWPF",
    /// No commit: the oldest operation, integer or floating point, is not complete.
    EuCompWait = "EU_COMP_WAIT",
    /// … a floating-point or SIMD operation.
    FlCompWait = "FL_COMP_WAIT",
    /// No commit: the oldest operation is an unresolved branch.
    BrCompWait = "BR_COMP_WAIT",
    /// No commit: nothing is in flight.
    RobEmpty = "ROB_EMPTY",
    /// … because the store port is full.
    RobEmptyStqBusy = "ROB_EMPTY_STQ_BUSY",
    /// … because the core waits in WFE or WFI.
    WfeWfiCycle = "WFE_WFI_CYCLE",
    /// … because the kernel works for the program. Not an event of a machine, whose kernel commits instructions.
    KernelCycles = "KERNEL_CYCLES",
    /// Only micro-operations that complete no instruction commit.
    UopOnlyCommit = "UOP_ONLY_COMMIT",
    /// Only a MOVPRFX commits.
    SingleMovprfxCommit = "SINGLE_MOVPRFX_COMMIT",

    // ---- pipelines ----
    /// Cycles in which EAGA is busy.
    EagaVal = "EAGA_VAL",
    /// Cycles in which EAGB is busy.
    EagbVal = "EAGB_VAL",
    /// Cycles in which EXA is busy.
    ExaVal = "EXA_VAL",
    /// Cycles in which EXB is busy.
    ExbVal = "EXB_VAL",
    /// Cycles in which FLA is busy.
    FlaVal = "FLA_VAL",
    /// Cycles in which FLB is busy.
    FlbVal = "FLB_VAL",
    /// Cycles in which PRX is busy.
    PrxVal = "PRX_VAL",
    /// Cycles in which load/store pipe 0 is busy.
    L1Pipe0Val = "L1_PIPE0_VAL",
    /// Cycles in which load/store pipe 1 is busy.
    L1Pipe1Val = "L1_PIPE1_VAL",
    /// Requests of load, store and prefetch operations that pipe 0 completed.
    L1Pipe0Comp = "L1_PIPE0_COMP",
    /// … pipe 1.
    L1Pipe1Comp = "L1_PIPE1_COMP",
    /// Sixteenths of these requests whose elements are inactive: 16 for one without an active element.
    L1Pipe0Inactive = "L1_PIPE0_INACTIVE",
    /// … of pipe 1.
    L1Pipe1Inactive = "L1_PIPE1_INACTIVE",
    /// Sixteenths of FLA operations whose elements are inactive: 16 for one without an active element. Includes the data of plain
    /// stores.
    FlaInactive = "FLA_INACTIVE",
    /// … of FLB.
    FlbInactive = "FLB_INACTIVE",
    /// Load/store flows aborted by the store fetch interlock.
    L1PipeAbortStldIntlk = "L1_PIPE_ABORT_STLD_INTLK",
    /// … because of a store to another address that has the same low bits.
    L1PipeAbortStldAlias = "L1_PIPE_ABORT_STLD_ALIAS",
    /// Cycles in which divisions, square roots and the like block their pipe for others of their kind. The machine has no event for it.
    DivideCycles = "DIVIDE_CYCLES",
    /// Cycles in which the core does nothing but compute with subnormal numbers. The machine has no event for it.
    SubnormalCycles = "SUBNORMAL_CYCLES",
    /// Gather pairs that took two flows.
    Gather2Flow = "L1_PIPE_COMP_GATHER_2FLOW",
    /// Gather pairs that took one flow.
    Gather1Flow = "L1_PIPE_COMP_GATHER_1FLOW",
    /// Gather pairs that took no flow.
    Gather0Flow = "L1_PIPE_COMP_GATHER_0FLOW",
    /// Flows of scatter stores.
    Scatter1Flow = "L1_PIPE_COMP_SCATTER_1FLOW",

    // ---- branches ----
    /// Branch instructions.
    BrPred = "BR_PRED",
    /// Mispredicted branches.
    BrMisPred = "BR_MIS_PRED",

    // ---- L1 caches ----
    /// L1 instruction cache accesses.
    L1iCache = "L1I_CACHE",
    /// L1 instruction cache refills.
    L1iCacheRefill = "L1I_CACHE_REFILL",
    /// L1 data cache accesses.
    L1dCache = "L1D_CACHE",
    /// L1 data cache refills.
    L1dCacheRefill = "L1D_CACHE_REFILL",
    /// … on demand.
    L1dCacheRefillDm = "L1D_CACHE_REFILL_DM",
    /// … by prefetch of either kind.
    L1dCacheRefillPrf = "L1D_CACHE_REFILL_PRF",
    /// … by hardware prefetch.
    L1dCacheRefillHwprf = "L1D_CACHE_REFILL_HWPRF",
    /// Lines written back from the L1 data cache.
    L1dCacheWb = "L1D_CACHE_WB",
    /// Sum over cycles of outstanding L1 data cache misses.
    L1MissWait = "L1_MISS_WAIT",
    /// L1 prefetches requested by the stream detector.
    L1HwpfStreamPf = "L1HWPF_STREAM_PF",
    /// L2 prefetches requested by the stream detector.
    L2HwpfStreamPf = "L2HWPF_STREAM_PF",
    /// L1 prefetches requested by injection through the prefetch queue.
    L1HwpfInjAllocPf = "L1HWPF_INJ_ALLOC_PF",
    /// L1 prefetches requested by injection with each access.
    L1HwpfInjNoallocPf = "L1HWPF_INJ_NOALLOC_PF",
    /// L2 prefetches requested by injection through the prefetch queue.
    L2HwpfInjAllocPf = "L2HWPF_INJ_ALLOC_PF",
    /// L2 prefetches requested by injection with each access.
    L2HwpfInjNoallocPf = "L2HWPF_INJ_NOALLOC_PF",

    // ---- L2 cache and memory ----
    /// L2 cache accesses.
    L2dCache = "L2D_CACHE",
    /// L2 cache refills.
    L2dCacheRefill = "L2D_CACHE_REFILL",
    /// … on demand.
    L2dCacheRefillDm = "L2D_CACHE_REFILL_DM",
    /// … by prefetch of either kind.
    L2dCacheRefillPrf = "L2D_CACHE_REFILL_PRF",
    /// … by hardware prefetch.
    L2dCacheRefillHwprf = "L2D_CACHE_REFILL_HWPRF",
    /// Lines written back from the L2 cache.
    L2dCacheWb = "L2D_CACHE_WB",
    /// Demand accesses that hit a miss buffer allocated by a prefetch.
    L2dSwapDm = "L2D_SWAP_DM",
    /// Prefetches that hit a miss buffer allocated by a demand access.
    L2dCacheMibmchPrf = "L2D_CACHE_MIBMCH_PRF",
    /// Sum over cycles of outstanding L2 cache misses.
    L2MissWait = "L2_MISS_WAIT",
    /// … on demand, for the part that main memory serves.
    L2MissWaitMainDm = "L2_MISS_WAIT_MAIN_DM",
    /// L2 cache misses on demand, for the part that main memory serves.
    L2MissMainDm = "L2_MISS_MAIN_DM",
    /// … those of stores.
    L2MissMainStore = "L2_MISS_MAIN_STORE",
    /// Cycles in which a load or a table walk has an L2 cache miss outstanding, or a load waits for a line that a prefetch or a store
    /// requested from memory.
    L2MissLoadCycles = "L2_MISS_LOAD_CYCLES",
    /// … for the part that main memory serves.
    L2MissLoadCyclesMain = "L2_MISS_LOAD_CYCLES_MAIN",
    /// How often such cycles begin, after one without.
    L2MissLoadBurstsMain = "L2_MISS_LOAD_BURSTS_MAIN",
    /// Cycles in which an instruction fetch has an L2 cache miss outstanding that main memory serves.
    L2MissCodeCyclesMain = "L2_MISS_CODE_CYCLES_MAIN",
    /// Cycles in which an L2 pipeline is busy, both banks together.
    L2PipeVal = "L2_PIPE_VAL",
    /// Requests for lines that the L1 data cache of another core may have changed. The machine has no event for it.
    OwnedElsewhere = "OWNED_ELSEWHERE",
    /// Lines read from local memory.
    BusReadTotalMem = "BUS_READ_TOTAL_MEM",
    /// Lines written to local memory.
    BusWriteTotalMem = "BUS_WRITE_TOTAL_MEM",
    /// Lines read from main memory by any CMG, behind the memory-side cache if there is one.
    MainMemoryRead = "MAIN_MEMORY_READ",
    /// Lines written to main memory.
    MainMemoryWrite = "MAIN_MEMORY_WRITE",
    /// Sum over cycles of reads outstanding at main memory.
    MainMemoryReadWait = "MAIN_MEMORY_READ_WAIT",
    /// Lines read from memory tiers: nodes without cores.
    TierRead = "TIER_READ",
    /// Lines written to memory tiers.
    TierWrite = "TIER_WRITE",
    /// Sum over cycles of reads outstanding at memory tiers.
    TierReadWait = "TIER_READ_WAIT",
    /// Faults of accesses to pages in memory tiers that a scan for hot pages had made inaccessible.
    TierHintFault = "TIER_HINT_FAULT",
    /// Pages that the system moved from memory tiers to nodes with cores.
    TierPromote = "TIER_PROMOTE",
    /// Their bytes.
    TierPromoteBytes = "TIER_PROMOTE_BYTES",
    /// Pages that the system moved from nodes with cores to memory tiers.
    TierDemote = "TIER_DEMOTE",
    /// Their bytes.
    TierDemoteBytes = "TIER_DEMOTE_BYTES",
    /// Cycles in which the program waited for scans, faults and promotions.
    TieringCycles = "TIERING_CYCLES",
    /// Cycles in which a thread of the system demoted pages.
    TieringReclaimCycles = "TIERING_RECLAIM_CYCLES",
    /// Lines read that hit the memory-side cache.
    MemoryCacheHit = "MEMORY_CACHE_HIT",
    /// Lines read that missed the memory-side cache.
    MemoryCacheMiss = "MEMORY_CACHE_MISS",
    /// Lines that the memory-side cache wrote to main memory.
    MemoryCacheWb = "MEMORY_CACHE_WB",
    /// Lines written to the memory of the machine's first CMG, by any CMG.
    BusWriteTotalCmg0 = "BUS_WRITE_TOTAL_CMG0",
    /// … of its second CMG.
    BusWriteTotalCmg1 = "BUS_WRITE_TOTAL_CMG1",
    /// … of its third CMG.
    BusWriteTotalCmg2 = "BUS_WRITE_TOTAL_CMG2",
    /// … of its fourth CMG.
    BusWriteTotalCmg3 = "BUS_WRITE_TOTAL_CMG3",
    /// Lines read from the memory of the machine's first CMG, by any CMG.
    ReadMemCmg0 = "READ_MEM_CMG0",
    /// … of its second CMG.
    ReadMemCmg1 = "READ_MEM_CMG1",
    /// … of its third CMG.
    ReadMemCmg2 = "READ_MEM_CMG2",
    /// … of its fourth CMG.
    ReadMemCmg3 = "READ_MEM_CMG3",
    /// Lines that another CMG read from the L2 cache of the machine's first CMG.
    ReadL2Cmg0 = "READ_L2_CMG0",
    /// … of its second CMG.
    ReadL2Cmg1 = "READ_L2_CMG1",
    /// … of its third CMG.
    ReadL2Cmg2 = "READ_L2_CMG2",
    /// … of its fourth CMG.
    ReadL2Cmg3 = "READ_L2_CMG3",

    // ---- translation ----
    /// L1 instruction TLB refills.
    L1iTlbRefill = "L1I_TLB_REFILL",
    /// L1 data TLB refills.
    L1dTlbRefill = "L1D_TLB_REFILL",
    /// L2 data TLB accesses.
    L2dTlb = "L2D_TLB",
    /// L2 data TLB refills.
    L2dTlbRefill = "L2D_TLB_REFILL",
    /// L2 instruction TLB accesses.
    L2iTlb = "L2I_TLB",
    /// L2 instruction TLB refills.
    L2iTlbRefill = "L2I_TLB_REFILL",

    // ---- instruction mix, derived from block counts ----
    /// Instructions that read memory.
    LdSpec = "LD_SPEC",
    /// Instructions that write memory.
    StSpec = "ST_SPEC",
    /// Integer data processing.
    DpSpec = "DP_SPEC",
    /// AdvSIMD data processing.
    AseSpec = "ASE_SPEC",
    /// Scalar floating-point data processing.
    VfpSpec = "VFP_SPEC",
    /// SVE instructions.
    SveInstRetired = "SVE_INST_RETIRED",
    /// Predicate processing.
    PrdSpec = "PRD_SPEC",
    /// MOVPRFX.
    SveMovprfxSpec = "SVE_MOVPRFX_SPEC",
    /// MOVPRFX that is not packed with the instruction after it.
    SveMovprfxUSpec = "SVE_MOVPRFX_U_SPEC",
    /// Prefetch instructions.
    PrfSpec = "PRF_SPEC",
    /// SVE contiguous prefetches.
    SvePrfContigSpec = "SVE_PRF_CONTIG_SPEC",
    /// SVE gather prefetches.
    SvePrfGatherSpec = "SVE_PRF_GATHER_SPEC",
    /// DC ZVA.
    DczvaSpec = "DCZVA_SPEC",
    /// SVE gather loads.
    SveLdGatherSpec = "SVE_LD_GATHER_SPEC",
    /// SVE scatter stores.
    SveStScatterSpec = "SVE_ST_SCATTER_SPEC",
    /// Load-exclusive instructions.
    LdrexSpec = "LDREX_SPEC",
    /// Store-exclusive instructions.
    StrexSpec = "STREX_SPEC",
    /// Cryptographic instructions.
    CryptoSpec = "CRYPTO_SPEC",
    /// Instruction synchronisation barriers.
    IsbSpec = "ISB_SPEC",
    /// Data synchronisation barriers.
    DsbSpec = "DSB_SPEC",
    /// Data memory barriers.
    DmbSpec = "DMB_SPEC",
    /// Moves between and within vector registers, and from and to general-purpose registers.
    FpMvSpec = "FP_MV_SPEC",
    /// Moves from one element to another, or to all elements.
    IelSpec = "IEL_SPEC",
    /// Moves between general-purpose and vector registers, and selections between registers.
    IregSpec = "IREG_SPEC",
    /// Loads of SIMD&FP registers that are not SIMD instructions.
    FpLdSpec = "FP_LD_SPEC",
    /// Stores of SIMD&FP registers that are not SIMD instructions.
    FpStSpec = "FP_ST_SPEC",
    /// Loads that broadcast an element, or a group of elements, to the whole register.
    BcLdSpec = "BC_LD_SPEC",
    /// Accesses that update their base register before the access.
    PreIndexSpec = "PRE_INDEX_SPEC",
    /// Accesses that update their base register after the access.
    PostIndexSpec = "POST_INDEX_SPEC",
    /// SIMD instructions.
    SimdInstRetired = "SIMD_INST_RETIRED",
    /// SVE instructions that assist mathematical functions.
    SveMathSpec = "SVE_MATH_SPEC",
    /// Floating-point operations.
    FpSpec = "FP_SPEC",
    /// … fused multiply-adds.
    FpFmaSpec = "FP_FMA_SPEC",
    /// … estimates of reciprocals and reciprocal square roots.
    FpRecpeSpec = "FP_RECPE_SPEC",
    /// Floating-point conversions.
    FpCvtSpec = "FP_CVT_SPEC",
    /// Integer operations on vector registers.
    AseSveIntSpec = "ASE_SVE_INT_SPEC",
    /// SVE instructions with a governing predicate.
    SvePredSpec = "SVE_PRED_SPEC",
    /// Loads of vector, SIMD&FP and predicate registers.
    AseSveLdSpec = "ASE_SVE_LD_SPEC",
    /// Stores of vector, SIMD&FP and predicate registers.
    AseSveStSpec = "ASE_SVE_ST_SPEC",
    /// Loads of general-purpose registers.
    BaseLdRegSpec = "BASE_LD_REG_SPEC",
    /// Stores of general-purpose registers.
    BaseStRegSpec = "BASE_ST_REG_SPEC",
    /// SVE LDR of whole registers.
    SveLdrRegSpec = "SVE_LDR_REG_SPEC",
    /// SVE STR of whole registers.
    SveStrRegSpec = "SVE_STR_REG_SPEC",
    /// … of predicate registers (LDR).
    SveLdrPregSpec = "SVE_LDR_PREG_SPEC",
    /// … of predicate registers (STR).
    SveStrPregSpec = "SVE_STR_PREG_SPEC",
    /// Loads of interleaved structures.
    AseSveLdMultiSpec = "ASE_SVE_LD_MULTI_SPEC",
    /// Stores of interleaved structures.
    AseSveStMultiSpec = "ASE_SVE_ST_MULTI_SPEC",
    /// First-fault and non-fault loads.
    SveLdffSpec = "SVE_LDFF_SPEC",
    /// Branches with the target in the instruction.
    BrImmedSpec = "BR_IMMED_SPEC",
    /// Returns.
    BrReturnSpec = "BR_RETURN_SPEC",
    /// Indirect branches.
    BrIndirectSpec = "BR_INDIRECT_SPEC",
    /// Floating-point operations of SVE instructions, per 128 bits of vector length.
    FpScaleOps = "FP_SCALE_OPS_SPEC",
    /// Floating-point operations of scalar and AdvSIMD instructions.
    FpFixedOps = "FP_FIXED_OPS_SPEC",
    /// Half-precision share of `FP_SCALE_OPS_SPEC`.
    FpHpScaleOps = "FP_HP_SCALE_OPS_SPEC",
    /// Half-precision share of `FP_FIXED_OPS_SPEC`.
    FpHpFixedOps = "FP_HP_FIXED_OPS_SPEC",
    /// Single-precision share of `FP_SCALE_OPS_SPEC`.
    FpSpScaleOps = "FP_SP_SCALE_OPS_SPEC",
    /// Single-precision share of `FP_FIXED_OPS_SPEC`.
    FpSpFixedOps = "FP_SP_FIXED_OPS_SPEC",
    /// Double-precision share of `FP_SCALE_OPS_SPEC`.
    FpDpScaleOps = "FP_DP_SCALE_OPS_SPEC",
    /// Double-precision share of `FP_FIXED_OPS_SPEC`.
    FpDpFixedOps = "FP_DP_FIXED_OPS_SPEC",
}

impl Signal {
    /// Returns whether its count follows from the order of accesses and branches alone, as far as that does not depend on time:
    /// functional warming counts it, too.
    #[must_use]
    pub const fn is_untimed(self) -> bool {
        use Signal as S;
        matches!(
            self,
            S::BrMisPred
                | S::L1iCacheRefill
                | S::L1dCacheRefill
                | S::L1dCacheRefillDm
                | S::L1dCacheRefillPrf
                | S::L1dCacheRefillHwprf
                | S::L1dCacheWb
                | S::L1HwpfStreamPf
                | S::L2HwpfStreamPf
                | S::L1HwpfInjAllocPf
                | S::L1HwpfInjNoallocPf
                | S::L2HwpfInjAllocPf
                | S::L2HwpfInjNoallocPf
                | S::L2dCache
                | S::L2dCacheRefill
                | S::L2dCacheRefillDm
                | S::L2dCacheRefillPrf
                | S::L2dCacheRefillHwprf
                | S::L2dCacheWb
                | S::OwnedElsewhere
                | S::BusReadTotalMem
                | S::BusWriteTotalMem
                | S::MainMemoryRead
                | S::L2MissMainDm
                | S::L2MissMainStore
                | S::MainMemoryWrite
                | S::TierRead
                | S::TierWrite
                | S::MemoryCacheHit
                | S::MemoryCacheMiss
                | S::MemoryCacheWb
                | S::BusWriteTotalCmg0
                | S::BusWriteTotalCmg1
                | S::BusWriteTotalCmg2
                | S::BusWriteTotalCmg3
                | S::ReadMemCmg0
                | S::ReadMemCmg1
                | S::ReadMemCmg2
                | S::ReadMemCmg3
                | S::ReadL2Cmg0
                | S::ReadL2Cmg1
                | S::ReadL2Cmg2
                | S::ReadL2Cmg3
                | S::L1iTlbRefill
                | S::L1dTlbRefill
                | S::L2dTlb
                | S::L2dTlbRefill
                | S::L2iTlb
                | S::L2iTlbRefill
        )
    }
}

/// The signals of lines written to the memory of each CMG; there are no events for further CMGs.
pub const WRITES_TO_CMG: [Signal; 4] =
    [Signal::BusWriteTotalCmg0, Signal::BusWriteTotalCmg1, Signal::BusWriteTotalCmg2, Signal::BusWriteTotalCmg3];

/// The signals of lines read from the memory of each CMG. The machine has no such events.
pub const READS_FROM_MEMORY: [Signal; 4] =
    [Signal::ReadMemCmg0, Signal::ReadMemCmg1, Signal::ReadMemCmg2, Signal::ReadMemCmg3];

/// The signals of lines that another CMG read from the L2 cache of each CMG. The machine has no such events.
pub const READS_FROM_L2: [Signal; 4] = [Signal::ReadL2Cmg0, Signal::ReadL2Cmg1, Signal::ReadL2Cmg2, Signal::ReadL2Cmg3];

/// A count for every [`Signal`].
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(try_from = "Vec<u64>", into = "Vec<u64>")]
pub struct Signals([u64; Signal::COUNT]);

impl From<Signals> for Vec<u64> {
    fn from(signals: Signals) -> Vec<u64> {
        signals.0.into()
    }
}

impl TryFrom<Vec<u64>> for Signals {
    type Error = &'static str;

    fn try_from(counts: Vec<u64>) -> Result<Signals, &'static str> {
        counts.try_into().map(Signals).map_err(|_| "the number of counts differs from the number of signals")
    }
}

impl Default for Signals {
    fn default() -> Signals {
        Signals([0; Signal::COUNT])
    }
}

impl Signals {
    /// Adds `n` to the count of `signal`.
    #[inline(always)]
    pub fn add(&mut self, signal: Signal, n: u64) {
        self.0[signal as usize] += n;
    }
    /// Returns the count of `signal`.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, signal: Signal) -> u64 {
        self.0[signal as usize]
    }
    /// Sets the count of `signal`.
    pub fn set(&mut self, signal: Signal, n: u64) {
        self.0[signal as usize] = n;
    }
    /// Iterates over all signals with their counts, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Signal, u64)> + '_ {
        Signal::ALL.iter().map(|&s| (s, self.get(s)))
    }
    /// Returns the counts since `earlier`, a previous state of the same counters.
    #[must_use]
    pub fn since(&self, earlier: &Signals) -> Signals {
        let mut out = Signals::default();
        for (o, (a, b)) in out.0.iter_mut().zip(self.0.iter().zip(&earlier.0)) {
            *o = a - b;
        }
        out
    }
    /// Raises these counts to those of `later`, a later state of the same counters. Returns the increments; a count that is
    /// already higher stays.
    pub fn advance(&mut self, later: &Signals) -> Signals {
        let mut missing = Signals::default();
        for (m, (a, b)) in missing.0.iter_mut().zip(self.0.iter_mut().zip(&later.0)) {
            *m = b.saturating_sub(*a);
            *a += *m;
        }
        missing
    }
    /// Adds all counts of `other`.
    pub fn merge(&mut self, other: &Signals) {
        self.add_times(other, 1);
    }
    /// Adds all counts of `other`, `many` times.
    pub fn add_times(&mut self, other: &Signals, many: u64) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a += b * many;
        }
    }
}

/// Counts of which most are 0: it keeps the others only.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(try_from = "Vec<(u8, u64)>", into = "Vec<(u8, u64)>")]
pub struct FewSignals(Box<[(u8, u64)]>);

impl From<&Signals> for FewSignals {
    fn from(signals: &Signals) -> FewSignals {
        FewSignals(signals.iter().filter(|&(_, n)| n > 0).map(|(signal, n)| (signal as u8, n)).collect())
    }
}

impl From<FewSignals> for Vec<(u8, u64)> {
    fn from(few: FewSignals) -> Vec<(u8, u64)> {
        few.0.into()
    }
}

impl TryFrom<Vec<(u8, u64)>> for FewSignals {
    type Error = &'static str;

    fn try_from(counts: Vec<(u8, u64)>) -> Result<FewSignals, &'static str> {
        let known = counts.iter().all(|&(signal, _)| usize::from(signal) < Signal::COUNT);
        if known { Ok(FewSignals(counts.into())) } else { Err("a count of a signal that does not exist") }
    }
}

impl FewSignals {
    /// Adds these counts, `many` times, to `signals`.
    #[inline]
    pub fn add_to(&self, signals: &mut Signals, many: u64) {
        for &(signal, n) in &self.0 {
            signals.0[usize::from(signal)] += n * many;
        }
    }
}
