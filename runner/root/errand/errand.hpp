// One task that is done as somebody else, and has one answer.
#pragma once

#include "common/host/identity.hpp"
#include "runner/root/errand/child.hpp"
#include "runner/wire/answer.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

// Who does it. `keep` are borrowed: the numbers are the same in the child.
struct Errand {
    std::string name; // for error messages
    const Account &as;
    std::vector<int> keep = {};
};

// Nothing but that it is done.
struct Done {
    [[nodiscard]] static std::string encode() { return {}; }
    static Done decode(std::string_view /*bytes*/) { return {}; }
};

// A list of texts.
struct Texts {
    std::vector<std::string> texts;
    [[nodiscard]] std::string encode() const { return Encoder().texts(texts).bytes(); }
    // Throws ProtocolError for more than `limit`.
    static Texts decode(std::string_view bytes, std::size_t limit)
    {
        Decoder decoder(bytes);
        Texts all{decoder.texts(limit)};
        decoder.end();
        return all;
    }
};

// `task` gets the child's proof that it is `errand.as`, and returns an answer, which encodes itself; the parent decodes what arrives, and
// `decode` refuses what was not asked for: the child is its user's. Throws the child's own Failure, and Failure(system_failure) when it
// died or did not answer within child_patience_seconds.
template <typename Task, typename Decode>
auto ask(const AsRoot &root, const Errand &errand, const Task &task, const Decode &decode)
{
    Child child(root, errand.name, errand.as, errand.keep,
                [&](const AsUser &self, FdRef channel) { send_long_answer(channel, task(self).encode()); });
    return decode(child.receive_long(child_patience_seconds));
}

// Of an answer that needs nothing but its own bytes to be decoded.
template <typename Answer, typename Task>
Answer ask(const AsRoot &root, const Errand &errand, const Task &task)
{
    return ask(root, errand, task, Answer::decode);
}

} // namespace pi_agent
