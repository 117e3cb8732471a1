// Privilege as types: a process claims root once, and becoming a user gives it up for good. The one home of the set*id calls.
#pragma once

#include "common/host/account.hpp"

namespace pi_agent {

// Proof that this process is root with all three ids. Code that needs root takes it as a parameter.
class AsRoot {
public:
    // Throws Failure(denied) unless real, effective and saved user ids are 0. Accepts group 0 only.
    static AsRoot claim();
    // For a forked child that will become somebody else; the parent keeps its own claim.
    [[nodiscard]] AsRoot for_child() const noexcept { return AsRoot(); }

    AsRoot(AsRoot &&) noexcept = default;
    AsRoot &operator=(AsRoot &&) noexcept = default;
    AsRoot(const AsRoot &) = delete;
    AsRoot &operator=(const AsRoot &) = delete;
    ~AsRoot() = default;

private:
    AsRoot() noexcept = default;
};

// Proof that this process gave up root and cannot regain it.
class AsUser {
public:
    [[nodiscard]] Uid uid() const noexcept { return uid_; }

private:
    friend AsUser become_user(AsRoot root, const Account &account);
    explicit AsUser(Uid uid) noexcept : uid_(uid) {}
    Uid uid_;
};

// Becomes `account` with exactly its groups, sets no_new_privs, clears dumpable, then checks every id and tries to regain root. Throws
// Failure if any id is wrong, and aborts the process if it could regain root (OpenSSH's rule).
AsUser become_user(AsRoot root, const Account &account);

// For one root thread, as long as this object lives: file systems see `account` (setfsuid(2)), also for what they reserve for root, and its
// capabilities stay. Throws Failure if that did not work.
void act_on_files_as(const AsRoot &root, const Account &account);

} // namespace pi_agent
