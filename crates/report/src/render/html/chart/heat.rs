//! A heat map: a table whose cells are darker for larger values.

use maud::{Markup, html};

use crate::document::Matrix;
use crate::render::scale::Scale;

/// Returns the largest value of a matrix.
pub fn most(matrix: &Matrix) -> f64 {
    matrix.values.iter().flatten().flatten().copied().fold(0.0, f64::max)
}

/// Returns the table, which also shows the values as text. A cell with `most` is the darkest, so that adjacent matrices
/// are comparable.
pub fn draw(title: &str, matrix: &Matrix, most: f64) -> Markup {
    let scale = Scale::of(&matrix.unit, matrix.values.iter().flatten().flatten().copied());
    html! {
        figure {
            figcaption { (title) }
            div.scroll tabindex="0" role="region" aria-label=(title) {
                table.heat {
                    caption { (scale.unit) ", from row to column" }
                    thead { tr { td {} @for column in &matrix.columns { th scope="col" { (column) } } } }
                    tbody {
                        @for (row, values) in matrix.rows.iter().zip(&matrix.values) {
                            tr {
                                th scope="row" { (row) }
                                @for value in values {
                                    @let shade = value.filter(|_| most > 0.0).map_or(0.0, |v| v / most);
                                    td style=(format!("--v:{shade:.2}")) { (scale.cell(*value)) }
                                }
                            }
                        }
                    }
                }
            }
            @if !matrix.reading.is_empty() { p.reading { (matrix.reading) } }
        }
    }
}
