// Bugs on purpose, compiled as the product is in a sanitized build: planted_test.py sees each of them end the program.
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

int main(int count, char **arguments)
{
    const std::string bug = count > 1 ? arguments[1] : "";
    [[maybe_unused]] volatile int sink = 0;
    const std::vector<int> few(static_cast<std::size_t>(count));
    if (bug == "overflow") sink = std::numeric_limits<int>::max() + count;
    if (bug == "read behind") sink = few.data()[few.size() + 1];
    std::puts("came to its end");
    return 0;
}
