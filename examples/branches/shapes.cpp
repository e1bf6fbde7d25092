// Adds up the areas of shapes of four kinds. They lie in random order, so that no predictor knows which case comes next. -DCURED sorts
// them by kind before.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "fxscope.h"

enum Kind : std::uint32_t { SQUARE, RECTANGLE, FRAME, TRIANGLE };
struct Shape {
    Kind kind;
    std::uint32_t a, b;
};

[[gnu::noinline]] static std::uint64_t area(const std::vector<Shape> &shapes)
{
    std::uint64_t sum = 0;
    for (const Shape &shape : shapes)
        switch (shape.kind) {
        case SQUARE: sum += shape.a * shape.a; break;
        case RECTANGLE: sum += shape.a * shape.b; break;
        case FRAME: sum += 2 * (shape.a + shape.b); break;
        case TRIANGLE: sum += shape.a * shape.b / 2; break;
        }
    return sum;
}

int main()
{
    std::vector<Shape> shapes(8000);
    std::uint32_t x = 1;
    for (Shape &shape : shapes) {
        x = x * 1664525 + 1013904223;
        shape = {static_cast<Kind>(x >> 30), 4, 2};
    }
#ifdef CURED
    std::sort(shapes.begin(), shapes.end(), [](const Shape &a, const Shape &b) { return a.kind < b.kind; });
#endif
    std::uint64_t sum = 0;
    FXSCOPE_BEGIN("areas");
    for (int pass = 0; pass < 5; pass++)
        sum += area(shapes);
    FXSCOPE_END("areas");
    std::printf("area %lu\n", sum);
    return sum == 0;
}
