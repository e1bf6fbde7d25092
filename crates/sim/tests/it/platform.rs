//! What Linux shows of a machine is what its file says.

use fxscope_linux::CpuPlace;
use fxscope_sim::platform;

#[test]
fn programs_see_the_distances_assistant_cores_and_l2_of_a_compute_node() {
    let spec = fxscope_machine::load("a64fx", &[]).expect("machine");
    let platform = platform(&spec, 1 << 30);
    assert_eq!(platform.node_distances, [10, 20, 30]);
    assert_eq!(platform.assistants, [CpuPlace { cpu: 0, node: 4 }, CpuPlace { cpu: 1, node: 5 }]);
    let l2 = platform.caches.last().expect("caches");
    assert_eq!((l2.bytes, l2.ways, l2.kept_ways), (8 << 20, 16, 2));
}
