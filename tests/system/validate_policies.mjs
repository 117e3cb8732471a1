// Holds policies against a JSON Schema: node validate_policies.mjs MODULES, with {"schema", "policies": [text]} on standard input.
// Prints a list: for each policy null where it cannot be read as YAML, or what the schema says against it.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(`${process.argv[2]}/`);
const Ajv = require("ajv");
const { parse } = require("yaml");
const { schema, policies } = JSON.parse(readFileSync(0, "utf8"));
const validate = new Ajv({ allErrors: true }).compile(schema); // strict: a word that the validator does not know is an error

function errors(text) {
    let value;
    try {
        value = parse(text);
    } catch {
        return null;
    }
    validate(value);
    return (validate.errors ?? []).map((error) => `${error.instancePath} ${error.message}`);
}

console.log(JSON.stringify(policies.map(errors)));
