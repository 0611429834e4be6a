/* SPDX-License-Identifier: MIT */
/* A library of the agent's name that does nothing: what counts is that it is mapped. */
int memguard_fake_agent(void);

int memguard_fake_agent(void) {
        return 0;
}
