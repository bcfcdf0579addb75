BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('v3.2.0.a');
CREATE TABLE studies (
	study_id INTEGER NOT NULL, 
	study_name VARCHAR(512) NOT NULL, 
	PRIMARY KEY (study_id)
);
INSERT INTO "studies" VALUES(1,'vitnas');
CREATE TABLE study_directions (
	study_direction_id INTEGER NOT NULL, 
	direction VARCHAR(8) NOT NULL, 
	study_id INTEGER NOT NULL, 
	objective INTEGER NOT NULL, 
	PRIMARY KEY (study_direction_id), 
	UNIQUE (study_id, objective), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "study_directions" VALUES(1,'MAXIMIZE',1,0);
INSERT INTO "study_directions" VALUES(2,'MINIMIZE',1,1);
INSERT INTO "study_directions" VALUES(3,'MINIMIZE',1,2);
CREATE TABLE study_system_attributes (
	study_system_attribute_id INTEGER NOT NULL, 
	study_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (study_system_attribute_id), 
	UNIQUE (study_id, "key"), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "study_system_attributes" VALUES(1,1,'study:metric_names','["top1", "flops", "latency_ms"]');
CREATE TABLE study_user_attributes (
	study_user_attribute_id INTEGER NOT NULL, 
	study_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (study_user_attribute_id), 
	UNIQUE (study_id, "key"), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "study_user_attributes" VALUES(1,1,'space','{"name": "old", "description": "", "data": {"name": "digits", "root": null, "val_fraction": 0.2, "split_seed": 0}, "proxy": {"epochs": 2, "batch_size": 512, "lr": 0.006, "weight_decay": 0.05, "warmup_epochs": 1.0, "label_smoothing": 0.1, "grad_clip": 1.0, "augment": "auto", "train_fraction": 1.0, "eval_batch_size": 512}, "objectives": {"top1": "maximize", "flops": "minimize", "latency_ms": "minimize"}, "limits": {"flops": {"min": null, "max": null}, "num_params": {"min": null, "max": null}, "latency_ms": {"min": null, "max": null}, "peak_memory_mb": {"min": null, "max": 50.0}}, "model": {"img_size": 8, "in_chans": 1, "num_classes": 10, "stem": {"kind": "conv", "stride": 2}, "stages": [{"token_mixer": {"choice": ["dwconv", "mhsa"]}, "depth": {"int": [1, 2]}, "embed_dim": {"choice": [16, 32]}}]}}');
INSERT INTO "study_user_attributes" VALUES(2,1,'seed','0');
INSERT INTO "study_user_attributes" VALUES(3,1,'format','1');
INSERT INTO "study_user_attributes" VALUES(4,1,'environment','{"sessions": [{"started": "2026-11-22T01:08:47+00:00", "command": "vitnas search old.yaml --out old_run --trials 4 --workers 1 --backend serial", "versions": {"python": "3.11.7", "vitnas": "0.1.0", "torch": "2.15.0", "timm": "1.0.31", "fvcore": "0.1.5.post20221221", "optuna": "5.0.0", "ray": "2.60.0", "numpy": "2.4.6"}, "hardware": {"cpu": "AMD EPYC", "cores": 2, "memory_gb": 25.3}, "git_revision": "652a54938949", "backend": "serial", "sampler": "ehvi", "pruner": {"name": "curve", "confidence": 0.98}, "hours": null, "gpu_hours": null, "replicates": null, "workers": 1, "gpus_per_trial": 0.0, "device": "cpu", "ended_by": null}], "seed": 0, "data": {"name": "digits", "num_classes": 10, "mean": [0.305787], "std": [0.375993], "num_train_images": 1151, "num_val_images": 287, "num_test_images": 359}, "proxy": {"epochs": 2, "batch_size": 512, "lr": 0.006, "weight_decay": 0.05, "warmup_epochs": 1.0, "label_smoothing": 0.1, "grad_clip": 1.0, "augment": "auto", "train_fraction": 1.0, "eval_batch_size": 512}}');
INSERT INTO "study_user_attributes" VALUES(5,1,'num_trials','4');
INSERT INTO "study_user_attributes" VALUES(6,1,'num_sessions','1');
INSERT INTO "study_user_attributes" VALUES(7,1,'test_top1','{"0": 27.8552, "1": 33.1476}');
CREATE TABLE trial_heartbeats (
	trial_heartbeat_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	heartbeat DATETIME NOT NULL, 
	PRIMARY KEY (trial_heartbeat_id), 
	UNIQUE (trial_id), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_intermediate_values (
	trial_intermediate_value_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	step INTEGER NOT NULL, 
	intermediate_value FLOAT, 
	intermediate_value_type VARCHAR(7) NOT NULL, 
	PRIMARY KEY (trial_intermediate_value_id), 
	UNIQUE (trial_id, step), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_params (
	param_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	param_name VARCHAR(512), 
	param_value FLOAT, 
	distribution_json TEXT, 
	PRIMARY KEY (param_id), 
	UNIQUE (trial_id, param_name), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_params" VALUES(1,1,'stages[0].token_mixer',0.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["dwconv", "mhsa"]}}');
INSERT INTO "trial_params" VALUES(2,1,'stages[0].depth',1.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 2}}');
INSERT INTO "trial_params" VALUES(3,1,'stages[0].embed_dim',0.0,'{"name": "CategoricalDistribution", "attributes": {"choices": [16, 32]}}');
INSERT INTO "trial_params" VALUES(4,2,'stages[0].token_mixer',1.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["dwconv", "mhsa"]}}');
INSERT INTO "trial_params" VALUES(5,2,'stages[0].depth',1.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 2}}');
INSERT INTO "trial_params" VALUES(6,2,'stages[0].embed_dim',1.0,'{"name": "CategoricalDistribution", "attributes": {"choices": [16, 32]}}');
INSERT INTO "trial_params" VALUES(7,3,'stages[0].token_mixer',1.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["dwconv", "mhsa"]}}');
INSERT INTO "trial_params" VALUES(8,3,'stages[0].depth',2.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 2}}');
INSERT INTO "trial_params" VALUES(9,3,'stages[0].embed_dim',1.0,'{"name": "CategoricalDistribution", "attributes": {"choices": [16, 32]}}');
INSERT INTO "trial_params" VALUES(10,4,'stages[0].token_mixer',0.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["dwconv", "mhsa"]}}');
INSERT INTO "trial_params" VALUES(11,4,'stages[0].depth',2.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 2}}');
INSERT INTO "trial_params" VALUES(12,4,'stages[0].embed_dim',0.0,'{"name": "CategoricalDistribution", "attributes": {"choices": [16, 32]}}');
CREATE TABLE trial_system_attributes (
	trial_system_attribute_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (trial_system_attribute_id), 
	UNIQUE (trial_id, "key"), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_user_attributes (
	trial_user_attribute_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (trial_user_attribute_id), 
	UNIQUE (trial_id, "key"), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_user_attributes" VALUES(1,1,'network','{"config": {"name": "network", "img_size": 8, "in_chans": 1, "num_classes": 10, "stem": {"kind": "conv", "stride": 2}, "stages": [{"token_mixer": "dwconv", "embed_dim": 16}]}, "key": "96402e32d204", "flops": 79856, "num_params": 5436, "seed": 1648558998}');
INSERT INTO "trial_user_attributes" VALUES(2,1,'measured','{"latency_ms": 1.353193, "peak_memory_mb": 0.038648, "measured_on": "AMD EPYC"}');
INSERT INTO "trial_user_attributes" VALUES(3,1,'curve','[16.3763, 28.223]');
INSERT INTO "trial_user_attributes" VALUES(4,1,'result','{"outcome": "complete", "values": [28.223, 79856.0, 1.353193], "seconds": 0.506, "device": "cpu"}');
INSERT INTO "trial_user_attributes" VALUES(5,2,'network','{"config": {"name": "network", "img_size": 8, "in_chans": 1, "num_classes": 10, "stem": {"kind": "conv", "stride": 2}, "stages": [{"token_mixer": "mhsa", "embed_dim": 32}]}, "key": "65f078b66fce", "flops": 224224, "num_params": 13994, "seed": 2120261214}');
INSERT INTO "trial_user_attributes" VALUES(6,2,'measured','{"latency_ms": 0.89844, "peak_memory_mb": 0.081072, "measured_on": "AMD EPYC"}');
INSERT INTO "trial_user_attributes" VALUES(7,2,'curve','[22.2997, 34.8432]');
INSERT INTO "trial_user_attributes" VALUES(8,2,'result','{"outcome": "complete", "values": [34.8432, 224224.0, 0.89844], "seconds": 0.647, "device": "cpu"}');
INSERT INTO "trial_user_attributes" VALUES(9,3,'network','{"config": {"name": "network", "img_size": 8, "in_chans": 1, "num_classes": 10, "stem": {"kind": "conv", "stride": 2}, "stages": [{"token_mixer": "mhsa", "depth": 2, "embed_dim": 32}]}, "key": "317afc627496", "flops": 442336, "num_params": 26698, "seed": 1706625758}');
INSERT INTO "trial_user_attributes" VALUES(10,3,'measured','{"latency_ms": 1.586641, "peak_memory_mb": 0.133936, "measured_on": "AMD EPYC"}');
INSERT INTO "trial_user_attributes" VALUES(11,3,'curve','[23.6934, 29.2683]');
INSERT INTO "trial_user_attributes" VALUES(12,3,'result','{"outcome": "complete", "values": [29.2683, 442336.0, 1.586641], "seconds": 1.071, "device": "cpu"}');
INSERT INTO "trial_user_attributes" VALUES(13,4,'network','{"config": {"name": "network", "img_size": 8, "in_chans": 1, "num_classes": 10, "stem": {"kind": "conv", "stride": 2}, "stages": [{"token_mixer": "dwconv", "depth": 2, "embed_dim": 16}]}, "key": "abf942db3bf2", "flops": 156656, "num_params": 10222, "seed": 1242241887}');
INSERT INTO "trial_user_attributes" VALUES(14,4,'measured','{"latency_ms": 1.465829, "peak_memory_mb": 0.058816, "measured_on": "AMD EPYC"}');
INSERT INTO "trial_user_attributes" VALUES(15,4,'curve','[16.3763, 24.7387]');
INSERT INTO "trial_user_attributes" VALUES(16,4,'result','{"outcome": "complete", "values": [24.7387, 156656.0, 1.465829], "seconds": 0.627, "device": "cpu"}');
CREATE TABLE trial_values (
	trial_value_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	objective INTEGER NOT NULL, 
	value FLOAT, 
	value_type VARCHAR(7) NOT NULL, 
	PRIMARY KEY (trial_value_id), 
	UNIQUE (trial_id, objective), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_values" VALUES(1,1,0,28.223,'FINITE');
INSERT INTO "trial_values" VALUES(2,1,1,79856.0,'FINITE');
INSERT INTO "trial_values" VALUES(3,1,2,1.353193,'FINITE');
INSERT INTO "trial_values" VALUES(4,2,0,34.8432,'FINITE');
INSERT INTO "trial_values" VALUES(5,2,1,224224.0,'FINITE');
INSERT INTO "trial_values" VALUES(6,2,2,0.89844,'FINITE');
INSERT INTO "trial_values" VALUES(7,3,0,29.2683,'FINITE');
INSERT INTO "trial_values" VALUES(8,3,1,442336.0,'FINITE');
INSERT INTO "trial_values" VALUES(9,3,2,1.586641,'FINITE');
INSERT INTO "trial_values" VALUES(10,4,0,24.7387,'FINITE');
INSERT INTO "trial_values" VALUES(11,4,1,156656.0,'FINITE');
INSERT INTO "trial_values" VALUES(12,4,2,1.465829,'FINITE');
CREATE TABLE trials (
	trial_id INTEGER NOT NULL, 
	number INTEGER, 
	study_id INTEGER, 
	state VARCHAR(8) NOT NULL, 
	datetime_start DATETIME, 
	datetime_complete DATETIME, 
	PRIMARY KEY (trial_id), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "trials" VALUES(1,0,1,'COMPLETE','2026-11-22 01:08:48.015159','2026-11-22 01:08:58.032658');
INSERT INTO "trials" VALUES(2,1,1,'COMPLETE','2026-11-22 01:08:58.075694','2026-11-22 01:08:59.374978');
INSERT INTO "trials" VALUES(3,2,1,'COMPLETE','2026-11-22 01:08:59.380831','2026-11-22 01:09:00.955947');
INSERT INTO "trials" VALUES(4,3,1,'COMPLETE','2026-11-22 01:09:00.990857','2026-11-22 01:09:02.178416');
CREATE TABLE version_info (
	version_info_id INTEGER NOT NULL, 
	schema_version INTEGER, 
	library_version VARCHAR(256), 
	PRIMARY KEY (version_info_id), 
	CHECK (version_info_id=1)
);
INSERT INTO "version_info" VALUES(1,12,'5.0.0');
CREATE UNIQUE INDEX ix_studies_study_name ON studies (study_name);
CREATE INDEX ix_trials_study_id ON trials (study_id);
COMMIT;
