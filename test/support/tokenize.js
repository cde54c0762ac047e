// Tokenizes lines (JSON) with VS Code's tokenizer and prints token scopes: node tokenize.js MODULES GRAMMAR < lines
const fs = require("fs");
const path = require("path");

const [modules, grammarFile] = process.argv.slice(2);
const load = (name) => require(path.join(modules, name));
const oniguruma = load("vscode-oniguruma");
const textmate = load("vscode-textmate");

async function main() {
  const wasm = fs.readFileSync(path.join(modules, "vscode-oniguruma", "release", "onig.wasm"));
  await oniguruma.loadWASM(wasm);
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async () => textmate.parseRawGrammar(fs.readFileSync(grammarFile, "utf8"), grammarFile),
  });
  const grammar = await registry.loadGrammar("source.mlir");
  let state = textmate.INITIAL;
  const found = JSON.parse(fs.readFileSync(0, "utf8")).map((line) => {
    const { tokens, ruleStack } = grammar.tokenizeLine(line, state);
    state = ruleStack;
    return tokens.map((t) => [line.slice(t.startIndex, t.endIndex), t.scopes.slice(1).join(" ")]);
  });
  process.stdout.write(JSON.stringify(found));
}

main();
