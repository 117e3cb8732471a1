// Reads YAML texts: node read_yaml.mjs MODULES, with a list of texts as JSON on standard input. Prints the list of their values as JSON.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { parse } = createRequire(`${process.argv[2]}/`)("yaml");
console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map((text) => parse(text))));
