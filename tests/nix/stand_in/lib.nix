# A small stand-in for nixpkgs' library: as much of it as the module uses, so that it can be evaluated where there is no nixpkgs.
let
  inherit (builtins) all attrNames concatLists concatMap elem filter foldl' head isAttrs isBool isFunction isInt isList isPath
    isString length listToAttrs mapAttrs sort stringLength substring tail toJSON;
  kindOf = value: if isAttrs value then value._type or null else null;
  unique = list: foldl' (seen: item: if elem item seen then seen else seen ++ [ item ]) [ ] list;

  # What a definition says of one name, with the conditions and orders around it.
  below = name: definition:
    let kind = kindOf definition; in
    if kind == "if" || kind == "order" || kind == "override" then map (inner: definition // { content = inner; }) (below name definition.content)
    else if kind == "merge" then concatMap (below name) definition.contents
    else if definition ? ${name} then [ definition.${name} ]
    else [ ];
  namesIn = definition:
    let kind = kindOf definition; in
    if kind == "if" then (if definition.condition then namesIn definition.content else [ ])
    else if kind == "order" || kind == "override" then namesIn definition.content
    else if kind == "merge" then concatMap namesIn definition.contents
    else attrNames definition;
  # { value, order, priority } of each definition that holds.
  discharge = definition:
    let kind = kindOf definition; in
    if kind == "if" then (if definition.condition then discharge definition.content else [ ])
    else if kind == "merge" then concatMap discharge definition.contents
    else if kind == "order" then map (found: found // { inherit (definition) order; }) (discharge definition.content)
    else if kind == "override" then map (found: found // { inherit (definition) priority; }) (discharge definition.content)
    else [{ value = definition; order = 1000; priority = 100; }];
  holding = definitions:
    let
      found = concatMap discharge definitions;
      first = foldl' (least: one: if one.priority < least then one.priority else least) 10000 found;
    in
    map (one: one.value) (sort (a: b: a.order < b.order) (filter (one: one.priority == first) found));

  type = name: check: merge: { inherit name check merge; };
  # Exactly one value, or equal ones.
  single = path: values:
    if length (unique values) == 1 then head values else throw "The option `${path}' has conflicting definitions: ${toJSON values}";
  plain = name: check: type name check single;
  mergeOf = type: path: values:
    let wrong = filter (value: !(type.check value)) values; in
    if wrong != [ ] then throw "A definition for option `${path}' is not of type `${type.name}': ${toJSON (head wrong)}" else type.merge path values;

  # What a module defines may depend on options, so values are looked up by what is declared, and names that nobody declares are found apart.
  evaluate = path: options: definitions:
    if kindOf options == "option" then
      let values = holding definitions; in
      if values != [ ] then mergeOf options.type path values
      else options.default or (throw "The option `${path}' was accessed but has no value defined")
    else mapAttrs (name: option: evaluate "${path}${name}${if kindOf option == "option" then "" else "."}" option (concatMap (below name) definitions)) options;
  unknownNames = path: options: definitions:
    if kindOf options == "option" then [ ]
    else
      concatMap (name: if options ? ${name} then [ ] else [ "${path}${name}" ]) (unique (concatMap namesIn definitions))
      ++ concatMap (name: unknownNames "${path}${name}." options.${name} (concatMap (below name) definitions)) (attrNames options);

  recursiveUpdate = a: b:
    if isAttrs a && isAttrs b then a // mapAttrs (name: value: if a ? ${name} then recursiveUpdate a.${name} value else value) b else b;

  lib = {
    inherit recursiveUpdate unique;
    mkOption = option: option // { _type = "option"; };
    mkIf = condition: content: { _type = "if"; inherit condition content; };
    mkMerge = contents: { _type = "merge"; inherit contents; };
    mkOrder = order: content: { _type = "order"; inherit order content; };
    mkBefore = lib.mkOrder 500;
    mkAfter = lib.mkOrder 1500;
    mkForce = content: { _type = "override"; priority = 50; inherit content; };
    literalExpression = text: { _type = "literalExpression"; inherit text; };
    hasPrefix = prefix: text: substring 0 (stringLength prefix) text == prefix;
    hasSuffix = suffix: text:
      stringLength text >= stringLength suffix && substring (stringLength text - stringLength suffix) (stringLength suffix) text == suffix;
    removeSuffix = suffix: text: if lib.hasSuffix suffix text then substring 0 (stringLength text - stringLength suffix) text else text;
    splitString = separator: text: filter isString (builtins.split (if separator == "." then "\\." else separator) text);
    setAttrByPath = path: value: if path == [ ] then value else { ${head path} = lib.setAttrByPath (tail path) value; };
    genAttrs = names: make: listToAttrs (map (name: { inherit name; value = make name; }) names);
    escapeShellArg = text: if builtins.match "[A-Za-z0-9,._+:@%/-]+" "${text}" != null then "${text}" else "'${builtins.replaceStrings [ "'" ] [ "'\\''" ] "${text}"}'";
    cleanSource = path: path;
    licenses.asl20 = "asl20";
    platforms.linux = [ "x86_64-linux" ];

    types = rec {
      bool = plain "bool" isBool;
      int = plain "int" isInt;
      str = plain "str" isString;
      anything = type "anything" (value: true) (path: foldl' recursiveUpdate { });
      path = plain "path" (value: isPath value || isString value || value ? outPath);
      package = plain "package" (value: isAttrs value && value.type or null == "derivation");
      lines = type "lines" isString (path: builtins.concatStringsSep "\n");
      enum = words: plain "enum ${toJSON words}" (value: elem value words);
      nullOr = inner: type "nullOr ${inner.name}" (value: value == null || inner.check value)
        (path: values: if all (value: value == null) values then null else mergeOf inner path values);
      either = one: other: type "either ${one.name} or ${other.name}" (value: one.check value || other.check value)
        (path: values: mergeOf (if all one.check values then one else other) path values);
      oneOf = inner: foldl' either (head inner) (tail inner);
      listOf = inner: type "listOf ${inner.name}" isList (path: values:
        map (value: mergeOf inner path [ value ]) (concatLists values));
      attrsOf = inner: type "attrsOf ${inner.name}" isAttrs (path: values:
        lib.genAttrs (unique (concatMap namesIn values))
          (name: mergeOf inner "${path}.${name}" (holding (concatMap (below name) values))))
        // { getSubOptions = inner.getSubOptions or (path: { }); };
      submodule = module: type "submodule" isAttrs (path: values: (lib.evalModules {
        modules = [ module ] ++ map (value: { config = value; }) values;
        prefix = "${path}.";
      }).config) // { getSubOptions = path: module.options; };
    };

    evalModules = { modules, specialArgs ? { }, prefix ? "" }:
      let
        load = module:
          let
            body = if isPath module || isString module then import module else module;
            value = if isFunction body then body ({ inherit config lib; } // specialArgs) else body;
            whole =
              if value ? options || value ? config then value
              else { imports = value.imports or [ ]; config = removeAttrs value [ "imports" ]; };
          in
          [ whole ] ++ concatMap load (whole.imports or [ ]);
        loaded = concatMap load modules;
        options = foldl' recursiveUpdate { } (map (module: module.options or { }) loaded);
        definitions = map (module: module.config or { }) loaded;
        unknown = unknownNames prefix options definitions;
        config = evaluate prefix options definitions;
      in
      {
        inherit options;
        config = if unknown == [ ] then config else throw "The option `${head unknown}' does not exist";
      };
  };
in
lib
