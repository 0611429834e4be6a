/* SPDX-License-Identifier: MIT */
/*
 * The MESSAGE_ID of every kind of event: a promise to whoever filters the journal by them, never changed and never
 * reused. conf/memguard.catalog has the text of each; a test compares the two. Layer: daemon.
 */
#pragma once

#define MG_MESSAGE_START            "f6ca736006574c07a46ade850211adda"
#define MG_MESSAGE_STOP             "8e19c0ec6fe24c4bb34781063c198e70"
#define MG_MESSAGE_AGENTS           "0916799b10b1461da9f8c5f4398a2ac0"
#define MG_MESSAGE_ALLOCATORS       "ebfdba35d5af4c04acbaf0af60018766"
#define MG_MESSAGE_AGENT_PROBLEM    "dfdf812f43fa41708afab5aa99a1a5b8"
#define MG_MESSAGE_TRIM             "8fd936b66bec486e9b8eb0b37017eec6"
#define MG_MESSAGE_TRIM_FAILED      "824c8717322e4580874e12862e52a536"
#define MG_MESSAGE_HOLD             "be420ef477c74b76a11bb248dcf4f8f4"
#define MG_MESSAGE_VERDICT          "afb59710d51846c2b7306878aa5f5bc9"
#define MG_MESSAGE_MODE             "7344d15634634ddba3b992ec536ba45d"
#define MG_MESSAGE_BREAKER          "c2d3bd492a9b4b099d9a2b409cc4c597"
#define MG_MESSAGE_PINNED           "076a9db7ae234ae88a7547687147dd9f"
#define MG_MESSAGE_CONFIG_LOADED    "0b9763dc1b7b44afafcfad6d26495746"
#define MG_MESSAGE_CONFIG_REJECTED  "17ecb005dce2431295f9183d2816a428"
#define MG_MESSAGE_CONFIG_WARNING   "31fe209529294603a1338f9ab61e5899"
#define MG_MESSAGE_SUMMARY          "0b77d8cfbceb41d3ace7157abae3ae4d"
#define MG_MESSAGE_NO_PRESSURE      "932f378cc53f4fab8b215799cb623cce"
#define MG_MESSAGE_PRESSURE         "0a1a656710244ead8b9325bea547693b"
#define MG_MESSAGE_LIVE_OVER_LIMIT  "52d5a373dcd84d9e8fecb21839d38392"
#define MG_MESSAGE_CLIENTS_TOLD     "22196890405b49efb55dbc2a6575768e"
#define MG_MESSAGE_PAUSED           "1856ce4f9bb24b41a2ff8515ecebfcf5"
#define MG_MESSAGE_RESUMED          "52f4a6baf4bd432d85d6127dc5659b1f"
#define MG_MESSAGE_STATISTICS_LARGE "0c4f445e4bda400490d60592531a223c"
#define MG_MESSAGE_STATE_IGNORED    "87accc552f4842e69bcc9d81938cb63e"
#define MG_MESSAGE_SOURCE           "fbe1bdd3762b41caa265c58b258588ce"
#define MG_MESSAGE_SUPPRESSED       "f4657cd6b9bf417da0a089f19c469ef0"
