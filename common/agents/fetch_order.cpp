// The order as JSON, and the answers as lines.
#include "common/agents/fetch_order.hpp"

#include "common/agents/agent_request.hpp"
#include "common/base/error.hpp"
#include "common/base/text.hpp"

#include <array>
#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

constexpr std::size_t longest_fetch_text = 2000;

nlohmann::json pinned_json(const PinnedPackage &pinned)
{
    return {{"package", pinned.package}, {"version", pinned.version}, {"integrity", pinned.integrity}};
}

PinnedPackage pinned_of(const nlohmann::json &json)
{
    return {json.at("package"), json.at("version"), json.at("integrity")};
}

// One line, without tabs.
std::string flat_text(const std::string &text)
{
    std::string flat = text.substr(0, longest_fetch_text);
    for (char &byte : flat)
        if (byte == '\n' || byte == '\t' || byte == '\r') byte = ' ';
    return flat;
}

} // namespace

std::string write_fetch_order(const FetchOrder &order)
{
    return nlohmann::json{{"registry", order.registry},
                          {"settings", order.settings},
                          {"certificates", order.certificates},
                          {"node", pinned_json(order.node)},
                          {"npm", pinned_json(order.npm)},
                          {"package", order.package},
                          {"command", order.command},
                          {"platform_package", order.platform_package},
                          {"version", order.version},
                          {"manifest", order.manifest},
                          {"lock", order.lock}}
        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

FetchOrder read_fetch_order(std::string_view json)
{
    try {
        const auto order = nlohmann::json::parse(json);
        return {order.at("registry"),       order.at("settings"), order.at("certificates"), pinned_of(order.at("node")),
                pinned_of(order.at("npm")), order.at("package"),  order.at("command"),      order.at("platform_package"),
                order.at("version"),        order.at("manifest"), order.at("lock")};
    } catch (const nlohmann::json::exception &failure) {
        throw Failure(ExitStatus::internal, std::string("this is not an order of pi-agentctl: ") + failure.what());
    }
}

std::string write_fetch_line(const FetchLine &line)
{
    switch (line.kind) {
    case FetchLine::Kind::step:
        return "step\t" + flat_text(line.text) + "\n";
    case FetchLine::Kind::size:
        return "size\t" + std::to_string(line.got) + "\t" + std::to_string(line.all) + "\n";
    case FetchLine::Kind::failure:
        return "failure\t" + flat_text(line.text) + "\n";
    case FetchLine::Kind::done:
        return "done\t" + flat_text(line.version) + "\t" + flat_text(line.program) + "\n";
    }
    return "";
}

std::optional<FetchLine> read_fetch_line(std::string_view line)
{
    const auto fields = split(line, '\t');
    if (fields.size() < 2 || line.size() > 2 * longest_fetch_text) return std::nullopt;
    FetchLine read;
    const auto kind = fields[0];
    if (kind == "step" || kind == "failure") {
        if (fields.size() != 2) return std::nullopt;
        read.kind = kind == "step" ? FetchLine::Kind::step : FetchLine::Kind::failure;
        read.text = fields[1];
        return read;
    }
    if (fields.size() != 3) return std::nullopt;
    if (kind == "size") {
        const auto got = to_number<std::uint64_t>(fields[1]);
        const auto all = to_number<std::uint64_t>(fields[2]);
        if (!got || !all) return std::nullopt;
        read.kind = FetchLine::Kind::size;
        read.got = *got;
        read.all = *all;
        return read;
    }
    if (kind != "done" || !is_package_version(fields[1]) || !is_path_in_package(fields[2])) return std::nullopt;
    read.kind = FetchLine::Kind::done;
    read.version = fields[1];
    read.program = fields[2];
    return read;
}

} // namespace pi_agent
