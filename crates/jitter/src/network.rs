//! How nodes are arranged.

/// A periodic grid of three directions for `nodes` nodes, as near to a cube as their number allows, the longest side first.
#[must_use]
pub fn grid(nodes: u32) -> [u32; 3] {
    let divisors = |n: u32| (1..=n.isqrt()).filter(move |d| n.is_multiple_of(*d)).flat_map(move |d| [d, n / d]);
    let surface = |[x, y, z]: [u32; 3]| {
        let [x, y, z] = [x, y, z].map(u64::from);
        x * y + y * z + z * x
    };
    let cuts = divisors(nodes).flat_map(|z| divisors(nodes / z).map(move |y| [nodes / z / y, y, z]));
    let best = cuts.filter(|[x, y, z]| x >= y && y >= z).min_by_key(|&sides| surface(sides));
    best.unwrap_or([nodes, 1, 1])
}

/// Rows and columns for `nodes` nodes, as near to a square as their number allows, no more rows than columns.
#[must_use]
pub fn square(nodes: u32) -> [u32; 2] {
    let rows = (1..=nodes.isqrt()).rev().find(|d| nodes.is_multiple_of(*d)).unwrap_or(1);
    [rows, nodes / rows.max(1)]
}
