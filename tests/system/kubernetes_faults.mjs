// Holds renderings against the types and schemas of Kubernetes' objects: node kubernetes_faults.mjs MODULES, with a list of texts of YAML on
// standard input. Prints for each the list of what is wrong. The types know which fields there are, the schemas which values these take.
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const modules = process.argv[2];
const require = createRequire(`${modules}/`);
const ts = require("typescript");
const { parseAllDocuments } = require("yaml");
const options = {
    noEmit: true,
    strict: true,
    skipLibCheck: true,
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    types: [],
};

// "v1" and "batch/v1" are modules of their own.
const moduleOf = (object) => `kubernetes-models/${object.apiVersion}`;

// A source in which each object is a literal: TypeScript refuses a field in these that the type has not.
function sourceOf(objects) {
    return objects
        .map((object, index) => {
            const type = `import("${moduleOf(object)}").I${object.kind}`;
            return `export const object${index}: ${type} = ${JSON.stringify(object)};`;
        })
        .join("\n");
}

// Of all texts at once, for reading the types takes longest: a list for each.
function wrongTypes(texts) {
    const sources = new Map(texts.map((objects, index) => [`${modules}/rendering${index}.mts`, sourceOf(objects)]));
    const host = ts.createCompilerHost(options);
    const { fileExists, getSourceFile } = host;
    host.fileExists = (path) => sources.has(path) || fileExists(path);
    host.getSourceFile = (path, version) =>
        sources.has(path) ? ts.createSourceFile(path, sources.get(path), version) : getSourceFile(path, version);
    const program = ts.createProgram([...sources.keys()], options, host);
    const general = [...program.getOptionsDiagnostics(), ...program.getGlobalDiagnostics()];
    return [...sources.keys()].map((path) => {
        const source = program.getSourceFile(path);
        const own = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
        return [...general, ...own].map((one) => ts.flattenDiagnosticMessageText(one.messageText, "\n"));
    });
}

async function wrongValues(objects) {
    const found = [];
    for (const object of objects) {
        const file = `${modules}/node_modules/${moduleOf(object)}/${object.kind}.js`;
        if (!existsSync(file)) {
            found.push(`${object.kind} is no kind of ${object.apiVersion}`);
            continue;
        }
        const { [object.kind]: Model } = await import(pathToFileURL(file));
        try {
            new Model(object).validate();
        } catch (failure) {
            found.push(`${object.kind}: ${failure.message}`);
        }
    }
    return found;
}

const texts = JSON.parse(readFileSync(0, "utf8")).map((text) => parseAllDocuments(text).map((document) => document.toJS()));
const values = await Promise.all(texts.map(wrongValues));
console.log(JSON.stringify(wrongTypes(texts).map((found, index) => [...found, ...values[index]])));
