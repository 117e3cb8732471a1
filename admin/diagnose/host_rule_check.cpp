// What is wrong with rules by name and patterns, or odd: those that say less, or more, than they seem to. And secrets in documents.
#include "admin/diagnose/faults.hpp"

#include "admin/diagnose/data.hpp"
#include "runner/root/errand/errand.hpp"

#include <fmt/format.h>
#include <libpsl.h>

namespace pi_agent {

namespace {

using PublicSuffixes = std::unique_ptr<psl_ctx_t, void (*)(psl_ctx_t *)>;

// The host's list, or the one that the library was built with, whichever is newer.
PublicSuffixes find_public_suffixes()
{
    return {psl_latest(nullptr), psl_free};
}

// Takes the last part away.
std::string_view take_part(std::string_view &name)
{
    const auto dot = name.rfind('.');
    const std::string_view part = dot == std::string_view::npos ? name : name.substr(dot + 1);
    name = dot == std::string_view::npos ? "" : name.substr(0, dot);
    return part;
}

// Whether `shared` is the name, or a name below it.
bool leads_to(std::string_view name, std::string_view shared)
{
    while (!name.empty() && !shared.empty()) {
        if (const std::string_view part = take_part(shared); take_part(name) != part && part != "*") return false;
    }
    return name.empty();
}

// Below which of its names, or below it, anybody can have one; none where no list says so: neither the host's nor ours, of storage,
// functions and tunnels, by what those who rent them out document. '*' is any one part there.
std::optional<std::string> where_anybody_is(const PublicSuffixes &suffixes, const std::string &name)
{
    // "com", and also "github.io": names below which anybody can have one. A name that no list knows is not one, such as "corp".
    if (psl_is_public_suffix2(suffixes.get(), name.c_str(), PSL_TYPE_ANY | PSL_TYPE_NO_STAR_RULE) == 1) return name;
    for (const auto shared : split(PI_AGENT_ANYBODYS_NAMES, '\n'))
        if (leads_to(name, shared)) return std::string(shared);
    return std::nullopt;
}

void each_list(const Policy &policy, const std::function<void(const std::vector<HostRule> &rules, const std::string &key)> &visit)
{
    each_level(policy, [&](const Rules &rules, const std::string &whose) {
        if (!rules.network) return;
        visit(rules.network->hosts, whose + "network.hosts");
        visit(rules.network->may_grant, whose + "network.may_grant");
        visit(rules.network->direct, whose + "network.direct");
    });
}

// Where an address of http or https leads; none for anything else, also for what a variable completes.
std::optional<HostRule> host_of_url(const std::string &url)
{
    for (const auto &[scheme, port] : {std::pair{"http://", std::string("80")}, {"https://", std::string("443")}}) {
        if (!lower_case(url).starts_with(scheme)) continue;
        auto place = url.substr(std::string(scheme).size());
        place.resize(std::min(place.size(), place.find_first_of("/?#")));
        const auto parts = parts_of_host(place.substr(place.rfind('@') + 1)); // npos + 1 is 0
        if (!parts) return std::nullopt;
        const bool is_v6 = parts->host.find(':') != std::string::npos;
        const auto parsed = parse_host_rule((is_v6 ? "[" + parts->host + "]" : parts->host) + ":" + parts->port.value_or(port));
        const auto *rule = std::get_if<HostRule>(&parsed);
        return rule == nullptr ? std::nullopt : std::optional(*rule);
    }
    return std::nullopt;
}

class Oddities {
public:
    explicit Oddities(std::vector<Diagnostic> &found) : found_(found) {}

    void look_at(const std::vector<HostRule> &rules, const std::string &key)
    {
        for (const auto &rule : rules) {
            look_for_other(rule, rules, key);
            if (is_loopback(rule) && rule.host != "localhost" && rule.host != loopback_v4 && rule.host != loopback_v6)
                add(rule, key,
                    "is of the host's loopback, which sessions find at 127.0.0.1 and ::1; beside these, only the proxy leads there",
                    fmt::format("write localhost:{} if the service listens at one of these, too", rule.port));
            if (is_metadata(rule))
                add(rule, key, "is where clouds hand out the host's own credentials", "take it out, unless sessions shall have them");
        }
    }

    // What a session may lack. Not of what its user may add: whoever adds a host sees whether that was the one.
    void look_for_missing(const std::vector<HostRule> &rules, const std::string &key, bool by_proxy)
    {
        for (const auto &rule : rules) {
            auto apex = rule;
            if (is_wildcard(rule)) apex.host.erase(0, 2);
            if (is_wildcard(rule) && rule_for(rules, apex) == nullptr)
                add(rule, key, "names hosts below " + apex.host + ", and not " + apex.host + " itself",
                    "add " + to_string(apex) + " if sessions need it");
            if (!by_proxy) look_for_address(rule, rules); // the proxy may know another one, of the Internet
        }
        tell_internal(key);
    }

    void look_at_grants(const NetworkPolicy &network, const std::string &key)
    {
        for (const auto &grant : network.may_grant)
            if (const auto *rule = rule_for(network.hosts, grant))
                add(grant, key, "is in hosts already (" + to_string(rule->where) + "), so there is nothing to add", "keep one of them");
    }

    // models.json of the policy: an address that no rule leads to is a "Connection error" in each answer.
    void look_at_models(const Rules &rules, const NetworkPolicy &network, const std::string &whose)
    {
        const auto models = rules.documents.find("models.json");
        if (models == rules.documents.end()) return;
        const auto providers = nlohmann::json::parse(models->second).value("providers", nlohmann::json::object());
        for (const auto &[name, provider] : providers.items()) {
            const auto url = provider.is_object() ? provider.value("baseUrl", nlohmann::json()) : nlohmann::json();
            const auto asked = url.is_string() ? host_of_url(url.get<std::string>()) : std::nullopt;
            if (!asked) continue;
            auto rule = *asked;
            if (is_loopback(rule)) rule.host = "localhost"; // as it is usually named
            if (rule_for(network.hosts, *asked) != nullptr || rule_for(network.hosts, rule) != nullptr) continue;
            const auto said = rules.places.find("models");
            found_.push_back({said == rules.places.end() ? Position{} : said->second.where,
                              whose + "models.providers." + escape_for_display(name) + ".baseUrl",
                              "leads to " + to_string(*asked) + ", which network.hosts (" + to_string(network.where) +
                                  ") does not name: each answer is a connection error",
                              "add \"" + to_string(rule) + "\" to network.hosts"});
        }
    }

    // Sessions with a gate have its address in the variables of a proxy.
    void look_at_environment(const Environment &env, const EnvironmentPlaces &places, const NetworkPolicy &network,
                             const std::string &whose)
    {
        for (const auto &[name, value] : gate_environment()) {
            if (!env.contains(name)) continue;
            const auto place = places.find(name);
            found_.push_back(
                {place == places.end() ? Position{} : place->second, whose + "env." + name,
                 "counts for nothing: network (" + to_string(network.where) + ") names hosts, and a session's only proxy is its own gate",
                 "remove it"});
        }
    }

    // What the levels around it say of a proxy, a level that says its own network does not have.
    void look_at_proxy(const NetworkPolicy &network, const std::optional<NetworkPolicy> &around, const std::string &whose)
    {
        if (!network.via && around && around->via)
            found_.push_back(
                {network.where, whose + "network",
                 "has no via, so its sessions do not use the proxy of the whole policy (" + to_string(around->via->where) + ")",
                 "repeat via there, if they need it"});
        for (const auto &rule : network.direct) {
            const auto is_reached = [&](const HostRule &host) { return covers(rule, {host.host}) || covers({host.host}, rule); };
            if (!is_loopback(rule) && std::ranges::none_of(network.hosts, is_reached) &&
                std::ranges::none_of(network.may_grant, is_reached))
                add(rule, whose + "network.direct", "is in none of hosts, so no session reaches it", "add it there, or remove it");
        }
    }

    void look_at_providers(const std::vector<HostRule> &rules, const std::vector<ProviderRule> &providers, const std::string &key)
    {
        for (const auto &provider : providers)
            if (const auto *rule = rule_for(rules, HostRule{provider.host}))
                add(*rule, key,
                    "names " + provider.host + ", to which requests go with the key of providers." + provider.name + " (" +
                        to_string(provider.where) + ") without a rule; with one, sessions can use other people's keys there, too",
                    "take it out");
    }

private:
    // A rule is compared with those before it, and with wider ones after it.
    void look_for_other(const HostRule &added, const std::vector<HostRule> &rules, const std::string &key)
    {
        for (const auto &wider : rules) {
            if (&wider == &added || !covers(wider, added) || (&wider > &added && covers(added, wider))) continue;
            add(added, key, "adds nothing: '" + to_string(wider) + "' (" + to_string(wider.where) + ") names all of it",
                "remove one of them");
            return;
        }
    }

    // The gate connects to an address of the host's own networks only where a rule names that, too (gate/rules.hpp).
    void look_for_address(const HostRule &rule, const std::vector<HostRule> &rules)
    {
        if (is_address(rule) || is_loopback(rule)) return;
        const auto is_for_it = [&](const HostRule &other) { return other.port == rule.port && is_address(other); };
        if (std::ranges::any_of(rules, is_for_it)) return;
        if (!suffixes_) suffixes_ = find_public_suffixes();
        // Whether its last part is one that the Internet has. Where it is not, whoever answers for the name is the administrator's own name
        // server.
        const auto last = rule.host.substr(rule.host.rfind('.') + 1); // npos + 1 is 0
        if (*suffixes_ && psl_is_public_suffix2(suffixes_->get(), last.c_str(), PSL_TYPE_ICANN | PSL_TYPE_NO_STAR_RULE) != 1)
            internal_[rule.port].push_back(&rule);
    }

    // One range answers for all of them.
    void tell_internal(const std::string &key)
    {
        for (const auto &[port, names] : internal_) {
            std::string others;
            for (std::size_t index = 1; index < names.size(); ++index)
                others += (index == 1 ? ", like " : ", ") + quote(to_string(*names[index]));
            add(*names.front(), key,
                "is not a name of the Internet" + others + ", so it leads into a network of yours, and no rule names an address there",
                fmt::format("add the range that it is in, with the same port, e.g. 10.20.0.0/16{}",
                            port == https_port ? "" : ":" + std::to_string(port)));
        }
        internal_.clear();
    }

    void add(const HostRule &rule, const std::string &key, const std::string &problem, const std::string &remedy)
    {
        found_.push_back({rule.where, key, quote(to_string(rule)) + " " + problem, remedy});
    }

    std::vector<Diagnostic> &found_;
    std::map<std::uint16_t, std::vector<const HostRule *>> internal_; // by port
    std::optional<PublicSuffixes> suffixes_;                          // read where there is something to ask
};

// --- What documents should not hold.

using Plain = nlohmann::json;

class SecretSearch {
public:
    explicit SecretSearch(const std::set<std::string> &variables) : variables_(variables) {}

    [[nodiscard]] std::string in(const Plain &data, const std::string &path) const
    {
        if (!data.is_structured()) return {};
        const Plain *before = nullptr; // in a list
        for (const auto &[key, value] : data.items()) {
            std::string below = path + "." + key;
            const bool is_secret = value.is_string() && (data.is_object() ? is_secret_value(key, value.get<std::string>())
                                                                          : is_secret_word(before, value.get<std::string>()));
            if (is_secret) return below;
            if (auto found = in(value, below); !found.empty()) return found;
            before = &value;
        }
        return {};
    }

private:
    // NAME, $NAME or ${NAME}, after "Bearer" or the like, too.
    [[nodiscard]] bool is_reference(std::string text) const
    {
        for (const char *scheme : {"bearer ", "basic ", "token "})
            if (lower_case(text).starts_with(scheme)) text = text.substr(text.find(' ') + 1);
        if (text.starts_with("${") && text.ends_with("}"))
            text = text.substr(2, text.size() - 3);
        else if (text.starts_with("$"))
            text = text.substr(1);
        return text.empty() || lower_case(text) == "none" || variables_.contains(text);
    }

    [[nodiscard]] bool is_secret_value(const std::string &name, const std::string &value) const
    {
        // A header that says who asks: "Authorization", "Proxy-Authorization", "Cookie".
        const std::string header = lower_case(name);
        const bool authorises = (header.ends_with("authorization") || header == "cookie") || lower_case(value).starts_with("bearer ") ||
                                lower_case(value).starts_with("basic ");
        return (authorises || looks_secret(name, value)) && !is_reference(value);
    }

    // "--token=x", "x" after "--token", "Authorization: x"; and what is one by itself.
    [[nodiscard]] bool is_secret_word(const Plain *before, const std::string &word) const
    {
        if (before != nullptr && before->is_string()) {
            const auto option = before->get<std::string>();
            if (option.starts_with("-") && option.find('=') == std::string::npos && is_secret_value(option, word)) return true;
        }
        for (const char *divider : {"=", ": "}) {
            const auto at = word.find(divider);
            if (at != std::string::npos && is_secret_value(word.substr(0, at), word.substr(at + std::string(divider).size()))) return true;
        }
        return is_secret_value("", word);
    }

    const std::set<std::string> &variables_;
};

void look_at_patterns(const Rules &rules, std::vector<Diagnostic> &found)
{
    for (const auto &mask : rules.mask.value_or(std::vector<PolicyPath>()))
        if (mask.path.find("**/") != std::string::npos)
            found.push_back({mask.where, rules.places.at("projects.mask").key,
                             quote(mask.path) + " does not match at any depth, because '*' stands for no '/', however often it is written",
                             "write a pattern without '/' for a name anywhere in the project, or name each path"});
    const auto &protection = rules.protect ? *rules.protect : Protection();
    for (const auto &path : protection.value_or(std::vector<PolicyPath>()))
        if (path.path.find_first_of("*?") != std::string::npos)
            found.push_back({path.where, rules.places.at("projects.protect").key,
                             quote(path.path) + " is the one path that is written so, because what is protected has no wildcards",
                             "name the paths themselves, or a directory that holds them"});
}

} // namespace

std::string secret_in_document(const std::string &document, const std::string &path, const std::set<std::string> &variables)
{
    return SecretSearch(variables).in(Plain::parse(document), path);
}

void each_level(const Policy &policy, const std::function<void(const Rules &rules, const std::string &whose)> &visit)
{
    visit(policy.rules, "");
    for (const auto &entry : policy.users) {
        if (entry.rules) visit(*entry.rules, entry_key(entry) + ".");
        for (const auto &root : entry.roots)
            if (root.rules) visit(*root.rules, root_key(entry, root) + ".");
    }
}

void check_host_rules(const Policy &policy, Problems &problems)
{
    std::optional<PublicSuffixes> suffixes; // read where there is something to ask
    each_list(policy, [&](const std::vector<HostRule> &rules, const std::string &key) {
        std::set<std::uint16_t> of_loopback;
        for (const auto &rule : rules) {
            if (has_own_listener(rule) && of_loopback.insert(rule.port).second && of_loopback.size() == host_port_limit + 1)
                problems.add(rule.where, key, fmt::format("names more than {} ports of this host's own loopback", host_port_limit),
                             "name fewer: a session has a listener for each");
            if (has_own_listener(rule) && (rule.port == gate_proxy_port || rule.port == gate_route_port))
                problems.add(rule.where, key, quote(to_string(rule)) + ": the gate itself listens there in each session",
                             "give that service another port");
            if (!is_wildcard(rule)) continue;
            if (!suffixes) suffixes = find_public_suffixes();
            const auto name = rule.host.substr(2);
            if (!*suffixes)
                problems.add(rule.where, key, "the list of public suffixes cannot be read", "install publicsuffix");
            else if (const auto shared = where_anybody_is(*suffixes, name))
                problems.add(rule.where, key, quote(to_string(rule)) + ": anybody can have a name below " + *shared,
                             "name the hosts themselves");
        }
    });
}

std::vector<Diagnostic> find_odd_host_rules(const Policy &policy)
{
    std::vector<Diagnostic> found;
    Oddities oddities(found);
    each_level(policy, [&](const Rules &rules, const std::string &whose) {
        const auto &network = rules.network ? rules.network : policy.rules.network;
        const auto &providers = rules.providers ? rules.providers : policy.rules.providers;
        if (!network || network->mode != NetworkMode::hosts) return;
        oddities.look_at_models(rules, *network, whose);
        if (providers && (rules.network || rules.providers)) {
            const std::string level = rules.network ? whose : "";
            oddities.look_at_providers(network->hosts, *providers, level + "network.hosts");
            oddities.look_at_providers(network->may_grant, *providers, level + "network.may_grant");
        }
        if (!rules.network) return;
        oddities.look_at(network->hosts, whose + "network.hosts");
        oddities.look_for_missing(network->hosts, whose + "network.hosts", network->via.has_value());
        oddities.look_at_proxy(*network, whose.empty() ? std::nullopt : policy.rules.network, whose);
        oddities.look_at(network->may_grant, whose + "network.may_grant");
        oddities.look_at_grants(*network, whose + "network.may_grant");
        const bool has_providers = !whose.empty() || (providers && !providers->empty());
        if (network->hosts.empty() && network->may_grant.empty() && !has_providers)
            found.push_back({network->where, whose + "network", "names no host, and there are no providers, so sessions reach nothing",
                             "name hosts, or say 'network: none'"});
    });
    const auto look_at_environment = [&](const Environment &env, const EnvironmentPlaces &places, const RulesPtr &rules,
                                         const std::string &whose) {
        const auto &network = rules && rules->network ? rules->network : policy.rules.network;
        if (network && network->mode == NetworkMode::hosts) oddities.look_at_environment(env, places, *network, whose);
    };
    look_at_environment(policy.env, policy.env_where, nullptr, "");
    for (const auto &entry : policy.users)
        look_at_environment(entry.env, entry.env_where, entry.rules, entry_key(entry) + ".");
    return found;
}

std::vector<Diagnostic> find_odd_patterns(const Policy &policy)
{
    std::vector<Diagnostic> found;
    for (const auto &[path, file_class] : policy.config_classes.rules())
        if (path.find_first_of("*?") != std::string::npos)
            found.push_back({{},
                             "config.classes." + escape_for_display(path),
                             "is the one path that is written so, because classes have no wildcards",
                             "name the directory around it, or each path"});
    each_level(policy, [&](const Rules &rules, const std::string & /*whose*/) { look_at_patterns(rules, found); });
    return found;
}

void check_key_files(HostCheck &check)
{
    const auto look = [&](const PolicyPath &file, const std::string &key, const std::function<void(const AsRoot &)> &read) {
        if (const auto &root = check.observer.root())
            check.report_failure(file.where, key, "", [&] { read(*root); });
        else
            check.unverified.push_back(fmt::format("{} ({}): only root can read it", file.path, to_string(file.where)));
    };
    each_level(check.policy, [&](const Rules &rules, const std::string &whose) {
        for (const auto &provider : rules.providers.value_or(std::vector<ProviderRule>()))
            look(provider.key_file, whose + "providers." + provider.name + ".key_file",
                 [&](const AsRoot &root) { ask_placeholders(root, {provider}); });
        if (!rules.network || rules.network->via_login_file.path.empty()) return;
        const auto &file = rules.network->via_login_file;
        look(file, whose + "network.via_login_file", [&](const AsRoot & /*root*/) {
            if (read_provider_key({"the proxy", file, {}, file.where}).find(':') == std::string::npos)
                throw Failure(ExitStatus::configuration, escape_for_display(file.path) + " has no NAME:PASSWORD");
        });
    });
}

} // namespace pi_agent
