// Questions go to standard error: standard output may be a file.
#include "admin/text/question.hpp"

#include "admin/text/nothing.hpp"
#include "common/base/error.hpp"

#include <iostream>
#include <unistd.h>

namespace pi_agent {

namespace {

bool can_ask()
{
    return ::isatty(STDIN_FILENO) == 1;
}

} // namespace

char ask_letter(const std::string &question, const std::string &letters)
{
    std::string answer;
    while (can_ask()) {
        std::cout.flush();
        std::cerr << question << ' ' << std::flush;
        if (!std::getline(std::cin, answer)) break;
        if (!answer.empty() && letters.find(answer.front()) != std::string::npos) return answer.front();
    }
    return letters.back();
}

void require_consent(const std::string &question, bool yes)
{
    if (yes) return;
    if (!can_ask())
        throw Failure(ExitStatus::usage, question + " This needs a confirmation; when standard input is no terminal, say --yes");
    if (ask_letter(question + " (y or n)", "yn") != 'y') throw Nothing("nothing is changed");
}

} // namespace pi_agent
